"""scripts/eager_table and its recordings, on a folder of their own."""

from __future__ import annotations

import gzip
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("LIVEPOOL_BUILD_DIR", ROOT / "build" / "release"))
STREAMS = ROOT / "scripts" / "lib" / "event_streams.py"
TABLE = BUILD / "bin" / "livepool-eager-table"
built = pytest.mark.skipif(not TABLE.is_file(), reason=f"{BUILD} has no livepool-eager-table")


def events(path, repeats=1):
    done = subprocess.run([sys.executable, STREAMS, path, str(repeats)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_trace_ends_its_passes_where_nothing_is_alive(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("id,lower,upper,size\n0,0,2,8\n1,1,3,9\n2,3,4,8\n")
    assert events(path) == ["begin 0", "alloc 0 0 8", "alloc 1 0 9", "free 0", "free 1", "end",
                            "begin 1", "alloc 2 0 8", "free 2", "end"]
    assert events(path, repeats=2)[10:14] == ["begin 0", "alloc 3 0 8", "alloc 4 0 9", "free 3"]


def snapshot(path, entries, annotations=()):
    trace = [{"action": action, "addr": address, "size": size, "frames": [name], "time_us": time}
             for time, (action, address, size, name) in enumerate(entries)]
    with gzip.open(path, "wb") as file:
        pickle.dump({"device_traces": [trace], "external_annotations": list(annotations)}, file)
    return path


LAYERS = [("alloc", 16, 512, "a"), ("alloc", 32, 512, "b"), ("free_requested", 16, 512, ""),
          ("free_completed", 16, 512, ""), ("free_requested", 32, 512, "")]


def test_a_snapshot_is_cut_into_periods(tmp_path):
    lines = events(snapshot(tmp_path / "s.pickle.gz", LAYERS * 3))
    assert [line for line in lines if line.startswith("begin")] == ["begin 0"] * 3
    first, second = (line.split() for line in lines if line.startswith(("alloc 0", "alloc 1 ")))
    assert first[2] != second[2], "frames tell sites apart"


def test_a_training_loop_is_cut_at_zero_grad(tmp_path):
    ends = [{"stage": "END", "name": "Optimizer.zero_grad#Adam.zero_grad", "time_us": 5}]
    lines = events(snapshot(tmp_path / "s.pickle.gz", LAYERS * 2, ends))
    assert [line.split()[0] for line in lines] == ["begin", *["alloc"] * 2, *["free"] * 2, "end"] * 2


def table(shared: Path, build: Path = BUILD) -> subprocess.CompletedProcess:
    environment = {**os.environ, "LIVEPOOL_SHARED": str(shared), "LIVEPOOL_BUILD_DIR": str(build)}
    return subprocess.run([ROOT / "scripts" / "eager_table"], capture_output=True, text=True, timeout=300,
                          env=environment, check=False)


@built
def test_one_row_for_each_recording(tmp_path):
    (tmp_path / "traces").mkdir()
    rows = "".join(f"{i},{i},{i + 2},{512 * (i + 1)}\n" for i in range(12))
    (tmp_path / "traces" / "chain.csv").write_text("id,lower,upper,size\n" + rows)
    done = table(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    generated, found, recorded = done.stdout.strip().split("\n\n")
    assert len(found.splitlines()) > len(generated.splitlines()) > 10
    assert all(row.strip("| ").endswith("| 0") for row in found.splitlines()[2:]), "overlaps"
    cells = [cell.strip() for cell in recorded.splitlines()[2].strip("|").split("|")]
    assert cells[:2] == ["chain.csv", "8"]
    assert cells[4] == "100.0 (100.0)"
    assert cells[5:8] == ["1", "11.50 KiB", "1.0000"], "the last two are alive at once"
    assert cells[-1] == "0"


@built
def test_a_line_that_is_no_event_is_named(tmp_path):
    stream = tmp_path / "stream"
    stream.write_text("begin 0\nalloc 1 2\n")
    done = subprocess.run([TABLE, stream], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{stream}:2: 'alloc 1 2' is no event" in done.stderr


@built
def test_says_when_there_are_no_recordings(tmp_path):
    done = table(tmp_path)
    assert done.returncode == 0
    assert "no recordings" in done.stdout


def test_says_when_the_tool_is_not_built(tmp_path):
    done = table(tmp_path, tmp_path)
    assert done.returncode == 2
    assert "is not built" in done.stderr
