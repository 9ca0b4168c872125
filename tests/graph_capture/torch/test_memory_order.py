"""Ops are moved to where less is alive at once: the arena gets smaller, and no result changes."""

import pytest
import torch

from test_random_programs import N, make_program


def arena(fn, args, **options):
    from livepool.capture import _capture

    return _capture(fn, args, {}, **options).report()["arena_bytes"]


def made_too_early(x):
    """Eight buffers of 40 KB are made, and only then reduced one by one."""
    large = [x[i].expand(10_000).contiguous() for i in range(8)]
    return torch.stack([each.cumsum(0).sum() for each in large])


def test_the_arena_gets_smaller(check, normal):
    assert arena(made_too_early, normal((8,))(0), order_for_memory=False) > 8 * 40_000
    graph = check(made_too_early, normal((8,)))
    assert graph.report()["arena_bytes"] < 3 * 40_960


@pytest.mark.parametrize("seed", range(100, 140))
def test_random_programs_never_need_more(check, normal, seed):
    program = make_program(seed, length=20)
    graph = check(program, normal((N, N), (N, N)), hits=False, misses=True)
    assert graph.report()["lower_bound_bytes"] <= _bound(program, normal((N, N), (N, N))(0))


def _bound(fn, args):
    from livepool.capture import _capture

    return _capture(fn, args, {}, order_for_memory=False).report()["lower_bound_bytes"]


def test_random_numbers_are_drawn_in_the_same_order(check, normal):
    def fn(x):
        large = [torch.rand(10_000) * x[i] for i in range(4)]
        small = [each.sum() for each in large]
        return torch.stack(small), torch.rand(3)

    check(fn, normal((4,)))


def test_writes_and_reads_keep_their_order(check, normal):
    def fn(x):
        large = [x[i].expand(10_000).contiguous() for i in range(4)]
        before = [each.sum() for each in large]
        x.mul_(2)
        after = [x[i] * 1.0 for i in range(4)]
        for each in large:
            each.add_(1)
        return before, after, [each.sum() for each in large]

    check(fn, normal((4,)))
