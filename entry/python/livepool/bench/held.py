"""What a fresh process holds for transients; `python -m livepool.bench.held` prints one JSON line.

    held = peak of (reserved by upstream + arena mapped) in steady state - weights - inputs

`torch.cuda.memory_reserved` of livepool's allocator counts the arena in, and native's arena is 0, so that on CUDA for both
    held = torch.cuda.max_memory_reserved() - weights - inputs
On the CPU, where nothing is reserved, the resident set of the process stands for it (livepool.bench.meter).
"""

import json
import sys

import torch
from torch.utils._pytree import tree_leaves

from livepool.bench import compare, meter, models, process

WARM_UP_PASSES = 3
PASSES = 5
TOLERANCE = 0.10  # of the driver's figure
GRANULARITY = 4 << 20  # bytes below which the driver's figure says nothing: it maps pages of 2 MiB
REPORTED = ("sum_bytes", "eager_live_peak_bytes", "lower_bound_bytes", "arena_bytes", "misses")


def prepare(mode, model, captured, outputs):
    """The callable that one pass runs: the model itself, or the replay of its graph; and the graph."""
    if mode == "native":
        return model, None
    import livepool

    graph = livepool.capture(model, mode="replay", outputs=outputs, **captured)
    return graph.replay, graph


@torch.no_grad()
def measure(mode, name, device, dtype, batch, outputs="fresh"):
    memory = meter.make(device)
    if mode == "livepool":
        import livepool

        livepool.install(device=device)
    work = models.build(name, device, dtype, batch)
    captured, steady = work.inputs(0), work.inputs(1)
    resident = memory.resident(models.weights_bytes(work.model) + models.storage_bytes(tree_leaves([captured, steady])))

    one_pass, graph = prepare(mode, work.model, captured, outputs)
    for _ in range(WARM_UP_PASSES):  # lazy libraries, workspaces, livepool's check of the first replay
        one_pass(**steady)
    figures = {"mode": mode, "model": name, "device": device, "dtype": dtype, "batch": work.batch, "resident_bytes": resident}
    if graph is not None:
        difference = compare.compare(work.model(**steady), one_pass(**steady))
        report = graph.report()
        figures |= {figure: report[figure] for figure in REPORTED}
        figures |= {"bitwise_equal": difference.equal, "difference": difference.reason}
    memory.settle()
    memory.reset_peak()
    for _ in range(PASSES):
        one_pass(**steady)
    figures["held_bytes"] = max(0, memory.peak() - resident)
    if device == "cuda":
        # The driver's own figure: what it gets back when everything goes, against what the allocator says it gave.
        used, reserved = memory.driver_used(), memory.now()
        del one_pass, graph, work, captured, steady
        memory.settle()
        figures["driver_held_bytes"] = used - memory.driver_used() + memory.now() - resident
        figures["steady_held_bytes"] = reserved - resident
    return figures


def disagreement(figures):
    """A warning where the driver's figure and the allocator's are more than 10 % apart, else None."""
    driver, ours = figures.get("driver_held_bytes"), figures.get("steady_held_bytes")
    if driver is None or abs(driver - ours) <= max(TOLERANCE * abs(driver), GRANULARITY):
        return None
    return (f"{figures['model']}, {figures['mode']}: the allocator says that it holds {ours / 2**20:.1f} MiB for "
            f"transients, the driver says {driver / 2**20:.1f} MiB")


def main(argv=None):
    parser = process.parser("held", __doc__.splitlines()[0], device="cuda")
    parser.add_argument("--batch", type=int, required=True)
    args = parser.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no CUDA device here")
    figures = measure(args.mode, args.model, args.device, args.dtype, args.batch, args.outputs)
    warning = disagreement(figures)
    if warning:
        print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
