"""Median times of several callables, run in turn in one process, so that drift of the machine hits all alike."""

import statistics
import time

import torch

BUDGET_SECONDS = 2.0
FEWEST, MOST = 5, 100


def _once(run, synchronize):
    synchronize()
    start = time.perf_counter()
    result = run()
    synchronize()
    seconds = time.perf_counter() - start
    del result
    return seconds


def interleaved_ms(runs, device):
    """Median milliseconds of each callable in `runs`; each is run once before the clock counts."""
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    warm = [_once(run, synchronize) for run in runs]
    rounds = min(MOST, max(FEWEST, int(BUDGET_SECONDS / max(sum(warm), 1e-6))))
    times = [[_once(run, synchronize) for run in runs] for _ in range(rounds)]
    return [1e3 * statistics.median(column) for column in zip(*times)]
