"""One model at many shapes, in turns, in one process; `python -m livepool.bench.round_trip` prints one JSON line."""

import json
import sys

import torch

from livepool.bench import meter, models, process

ROUNDS = 4


@torch.no_grad()
def measure(mode, name, device, dtype, shapes, outputs="fresh"):
    """What the process holds for transients after each round over `shapes`, pairs of batch and length."""
    memory = meter.make(device)
    if mode == "livepool":
        import livepool

        livepool.install(device=device)
    work = models.build(name, device, dtype, 1)
    if mode == "livepool":
        livepool.wrap(work.model, max_graphs=len(shapes), capture_after=1, outputs=outputs)
    weights = memory.resident(models.weights_bytes(work.model))

    def one_round(seed):
        for batch, length in shapes:
            work.model(**work.inputs(seed, batch, length))

    one_round(0)  # captures
    one_round(1)  # checks
    figures = {"mode": mode, "model": name, "device": device, "dtype": dtype, "shapes": len(shapes), "held_bytes_after": []}
    memory.settle()
    for seed in range(2, 2 + ROUNDS):
        one_round(seed)
        figures["held_bytes_after"].append(max(0, memory.now() - weights))
    if mode == "livepool":
        explanation = livepool.explain(work.model)
        plans = [each.graph["arena_bytes"] for each in explanation.signatures if each.graph is not None]
        arena = livepool.stats()["arena_bytes_of"]["cuda:0" if device == "cuda" else "cpu"]
        figures |= {"plans": len(plans), "sum_of_plans_bytes": sum(plans), "largest_plan_bytes": max(plans, default=0),
                    "arena_bytes": arena, "replayed": explanation.replayed, "reasons": explanation.as_is}
    return figures


def shape(text):
    batch, _, length = text.partition("x")
    return int(batch), int(length)


def main(argv=None):
    parser = process.parser("round_trip", __doc__.splitlines()[0])
    parser.add_argument("--shapes", required=True, help="BATCHxLENGTH, separated by commas")
    args = parser.parse_args(argv)
    shapes = [shape(text) for text in args.shapes.split(",")]
    print(json.dumps(measure(args.mode, args.model, args.device, args.dtype, shapes, args.outputs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
