"""Recorded programs as event streams for livepool-eager-table: what its reader in tests/eager/event_stream.h takes.

    event_streams.py FILE [REPEATS]      a trace (.csv) or a CUDA memory snapshot (.pickle.gz), to standard output

A trace has no call sites, so its sites are 0: only sizes and order tell its allocations apart. A pass ends where
nothing is alive. A snapshot's sites are hashes of the Python frames, which are coarser than the stack's depth; a pass
ends with each optimizer's zero_grad, or else after one period of the allocations. The whole is repeated REPEATS times.
"""

from __future__ import annotations

import csv
import gzip
import pickle
import sys
import zlib
from collections import defaultdict
from pathlib import Path


class Event(tuple):
    """("alloc", buffer, site, size) or ("free", buffer)."""


def trace_passes(path: Path) -> list[list[Event]]:
    """The passes of a trace: lifetimes as rows of id, lower, upper, size."""
    with path.open(encoding="utf-8") as file:
        rows = [(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]
    times = []  # frees before allocations at equal times: lifetimes are half-open
    for buffer, (lower, upper, size) in enumerate(rows):
        times.append((lower, 1, Event(("alloc", buffer, 0, size))))
        times.append((upper, 0, Event(("free", buffer))))
    passes, now, live = [], [], 0
    for _, is_alloc, event in sorted(times, key=lambda each: each[:2]):
        now.append(event)
        live += 1 if is_alloc else -1
        if live == 0:
            passes.append(now)
            now = []
    return passes


def snapshot_passes(path: Path) -> list[list[Event]]:
    """The passes of torch.cuda.memory._snapshot(), pickled and zipped."""
    with gzip.open(path) as file:
        snapshot = pickle.load(file)
    entries = [e for e in snapshot["device_traces"][0] if e["action"] in ("alloc", "free_requested")]
    ends = [a["time_us"] for a in snapshot["external_annotations"] if a["stage"] == "END" and "zero_grad" in a["name"]]
    events, stamps, buffer_at = [], [], {}
    for number, entry in enumerate(entries):
        if entry["action"] == "alloc":
            buffer_at[entry["addr"]] = number
            site = zlib.crc32(repr(entry["frames"]).encode())
            events.append(Event(("alloc", number, site, entry["size"])))
        elif entry["addr"] in buffer_at:
            events.append(Event(("free", buffer_at.pop(entry["addr"]))))
        else:
            continue
        stamps.append(entry["time_us"])
    if ends:
        return split(events, lambda i, _: any(stamps[i - 1] < end <= stamps[i] for end in ends))
    starts = period_starts([event[2:] for event in events if event[0] == "alloc"])
    return split(events, lambda i, allocated: events[i][0] == "alloc" and allocated in starts)


def period_starts(keys: list) -> set[int]:
    """The allocations at which a period begins: the distance at which most keys come again."""
    def agreement(distance):
        return sum(a == b for a, b in zip(keys, keys[distance:], strict=False)) / (len(keys) - distance)
    best = max(range(1, len(keys) // 2 + 1), key=agreement)
    return set(range(0, len(keys), best))


def split(events: list[Event], begins) -> list[list[Event]]:
    passes, allocated = [[]], 0
    for i, event in enumerate(events):
        if i > 0 and begins(i, allocated):
            passes.append([])
        allocated += event[0] == "alloc"
        passes[-1].append(event)
    return [each for each in passes if each]


def write(passes: list[list[Event]], repeats: int, out) -> None:
    """Passes of the same allocations in the same order are one shape."""
    shapes = defaultdict(lambda: len(shapes))
    buffers = 1 + max(event[1] for each in passes for event in each)
    for repeat in range(repeats):
        for each in passes:
            out.write(f"begin {shapes[tuple(event[2:] for event in each if event[0] == 'alloc')]}\n")
            for kind, buffer, *rest in each:
                out.write(" ".join(map(str, [kind, buffer + repeat * buffers, *rest])) + "\n")
            out.write("end\n")


def main(argv: list[str]) -> int:
    if not 1 <= len(argv) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(argv[0])
    passes = trace_passes(path) if path.suffix == ".csv" else snapshot_passes(path)
    write(passes, int(argv[1]) if len(argv) == 2 else 8, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
