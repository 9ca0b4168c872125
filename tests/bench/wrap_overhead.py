"""What a wrapped call costs beside the replay itself, and beside eager: a small model on one CPU thread.

    scripts/python tests/bench/wrap_overhead.py [--rows N] [--layers N]

Prints microseconds, the least of many runs (what else the machine does only adds).
"""

import argparse
import time

import torch
from torch import nn


def least(call, seconds: float = 2.0, batch: int = 1) -> float:
    """The least time of one call, in us, over batches that take `seconds` together."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        best = min(best, (time.perf_counter() - start) / batch)
    return best * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--layers", type=int, default=6)
    options = parser.parse_args()

    import livepool
    from livepool.structure import RULES

    torch.set_num_threads(1)
    livepool.install("cpu")
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(options.layers)]).eval()
    x = torch.randn(options.rows, 64)
    with torch.inference_mode():
        figures = {"eager": least(lambda: model(x))}
        graph = livepool.capture(model, x)
        graph.replay(torch.randn_like(x))  # checked
        figures["graph.replay"] = least(lambda: graph.replay(x))
        look_at_state = least(graph._call.state.check, batch=50)
        livepool.wrap(model, capture_after=1)
        for _ in range(3):
            model(torch.randn_like(x))
        figures["wrapped call"] = least(lambda: model(x))
        assert livepool.explain(model).signatures[0].graph["misses"] == 0
        with livepool.disabled():
            figures["wrapped call that runs as it is"] = least(lambda: model(x))
        key = RULES.key((x,), {})[0]
        table = {key: None}
        figures["of it: key of the call"] = least(lambda: RULES.key((x,), {}), batch=50)
        figures["of it: look-up of the key"] = least(lambda: table[key], batch=50)
        figures["of it: look at the state"] = look_at_state
    for name, us in figures.items():
        print(f"{name:34} {us:8.1f} us")


if __name__ == "__main__":
    main()
