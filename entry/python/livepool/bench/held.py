"""What a fresh process holds for transients on a CUDA device; `python -m livepool.bench.held` prints one JSON line.

    held = peak of (reserved by upstream + arena mapped) in steady state - weights - inputs

`torch.cuda.memory_reserved` of livepool's allocator counts the arena in, and native's arena is 0, so that for both
    held = torch.cuda.max_memory_reserved() - weights - inputs
"""

import argparse
import gc
import json
import sys

import torch

from livepool.bench import models

WARM_UP_PASSES = 3
PASSES = 5
TOLERANCE = 0.10  # of the driver's figure
GRANULARITY = 4 << 20  # bytes below which the driver's figure says nothing: it maps pages of 2 MiB


def prepare(mode, model, captured):
    """The callable that one pass runs: the model itself, or the replay of its graph."""
    if mode == "native":
        return model
    import livepool

    return livepool.capture(model, **captured).replay


def settle():
    """Gives back to the driver all that no tensor uses."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def driver_used():
    free, total = torch.cuda.mem_get_info()
    return total - free


@torch.no_grad()
def measure(mode, name, dtype, batch):
    if mode == "livepool":
        import livepool

        livepool.install(device="cuda")
    work = models.build(name, "cuda", dtype, batch)
    batch = work.batch
    captured, steady = work.inputs(0), work.inputs(1)
    resident = models.weights_bytes(work.model) + models.storage_bytes([*captured.values(), *steady.values()])

    one_pass = prepare(mode, work.model, captured)
    for _ in range(WARM_UP_PASSES):  # lazy libraries, workspaces, livepool's check of the first replay
        one_pass(**steady)
    settle()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(PASSES):
        one_pass(**steady)
    torch.cuda.synchronize()
    figures = {"mode": mode, "model": name, "dtype": dtype, "batch": batch, "resident_bytes": resident,
               "held_bytes": torch.cuda.max_memory_reserved() - resident}

    # The driver's own figure: what it gets back when everything goes, against what the allocator says it gave.
    used, reserved = driver_used(), torch.cuda.memory_reserved()
    del one_pass, work, captured, steady
    settle()
    figures["driver_held_bytes"] = used - driver_used() + torch.cuda.memory_reserved() - resident
    figures["steady_held_bytes"] = reserved - resident
    return figures


def disagreement(figures):
    """A warning where the driver's figure and the allocator's are more than 10 % apart, else None."""
    driver, ours = figures["driver_held_bytes"], figures["steady_held_bytes"]
    if abs(driver - ours) <= max(TOLERANCE * abs(driver), GRANULARITY):
        return None
    return (f"{figures['model']}, {figures['mode']}: the allocator says that it holds {ours / 2**20:.1f} MiB for "
            f"transients, the driver says {driver / 2**20:.1f} MiB")


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m livepool.bench.held", description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("native", "livepool"), required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--dtype", choices=sorted(models.DTYPES), required=True)
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        parser.error("torch sees no CUDA device here")
    figures = measure(args.mode, args.model, args.dtype, args.batch)
    warning = disagreement(figures)
    if warning:
        print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
