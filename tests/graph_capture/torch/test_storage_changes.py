"""resize_, set_ and storage changes in the pass: allocations are followed, not remembered pointers."""

import pytest
import torch

X = torch.arange(12.0)


def twelve(seed: int) -> tuple:
    return (X * (seed + 1) - seed,)


RIGHT = {
    "shrunk": lambda x: (x * 2).resize_(6) + 1,
    "grown and filled": lambda x: (x * 2).resize_(24).fill_(3) * 2,
    "grown, old bytes read": lambda x: (lambda y: (y.resize_(24), y[12:].zero_(), y * 2)[2])(x * 2),
    "resize_ twice": lambda x: (x * 2).resize_(100).resize_(6).fill_(1) + x[:6],
    "resize_as_": lambda x: (x * 2).resize_as_(x.view(3, 4)) + 1,
    "empty resized and filled": lambda x: torch.empty(0).resize_(12).copy_(x) * 2,
    "set_ to another tensor": lambda x: (x * 2).set_((x * 3).view(3, 4)) + 1,
    "set_ and source written": lambda x: (lambda a, b: (a.set_(b), b.add_(1), a * 2)[2])(x * 2, x * 3),
    "set_ to nothing": lambda x: (lambda y, z: (y.set_(), z + 1)[1])(x * 2, x * 3),
    "old storage dies in set_": lambda x: (lambda a: (a.set_(torch.ones(12) * x), a * 2, torch.exp(x) * 2))(x * 2)[1:],
    "out= of another size": lambda x: (lambda o: (torch.mul(x, 2, out=o), o + 1)[1])(torch.zeros(0)),
    "grown in a chain": lambda x: (lambda y: (y.resize_(24).zero_(), torch.cat([y, x * 2, torch.exp(x)]).sin())[1])(x + 1),
    "view of a storage that grows": lambda x: (lambda y: (lambda v: (y.resize_(30), y[12:].zero_(), v + 1)[2])(y[:6]))(x * 2),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.filterwarnings("ignore:.*non-writable.*")
@pytest.mark.parametrize("fn", RIGHT.values(), ids=RIGHT)
def test_right(check, fn):
    check(fn, twelve, hits=False, misses=True)


REFUSED = {
    "grown and read": lambda x: (x * 2).resize_(24) + 1,
    "grown and returned": lambda x: (x * 2).resize_(24),
    "argument resized": lambda x: x.resize_(6) + 1,
    "argument set_": lambda x: x.set_(x * 2) + 1,
    "argument transposed in place": lambda x: x.unsqueeze_(0) + 1,
    "set_ of a storage": lambda x: (x * 2).set_(torch.ones(12).untyped_storage()) + 1,
    "storage resized": lambda x: (lambda y: (y.untyped_storage().resize_(0), x + 1)[1])(x * 2),
    "storage filled": lambda x: (lambda y: (y.untyped_storage().fill_(0), y + 1)[1])(x * 2),
}


@pytest.mark.parametrize("fn", REFUSED.values(), ids=REFUSED)
def test_refused(refused, fn):
    refused(fn, X.clone(), match=".")


def test_state_resized_is_refused(refused):
    state = torch.zeros(3)
    refused(lambda x: state.resize_(12) + x, X, match="state tensor|argument")


SIZES = [0, 1, 511, 82262, (2 << 20) + 1]


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(check, livepool, n):
    """Field fault 17: every pointer a multiple of 64, of slots and outputs alike."""
    def fn(x):
        y = x + 1
        return (y * 2 ^ y)[: n // 2], y

    def inputs(seed):
        return (torch.full((n,), seed, dtype=torch.uint8),)

    graph = check(fn, inputs, hits=n > 0)
    assert all(t.data_ptr() % 64 == 0 for t in graph.replay(*inputs(4)))


@pytest.mark.parametrize("n", SIZES[1:])
def test_slots_are_aligned(livepool, n):
    """A custom operator looks at the pointers that it is served."""
    seen = []

    @torch.library.custom_op(f"livepool_test::pointer_{n}", mutates_args=())
    def pointer(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.data_ptr())
        return x.clone()

    graph = livepool.capture(lambda x: pointer(pointer(x + 1) + 1) + 1, torch.zeros(n, dtype=torch.uint8))
    for value in (1, 2):
        graph.replay(torch.full((n,), value, dtype=torch.uint8))
    assert graph.report()["hits"] > 0
    assert len(seen) >= 6 and all(each % 64 == 0 for each in seen)


EMPTY = {
    "zero-size": lambda x: (torch.cat([x * 2, x.new_zeros(0)]), (x * 2)[:0] + 1, torch.empty(0), torch.zeros(3, 0).sum(1)),
    "many zero-size": lambda x: [torch.zeros(0) + torch.empty(0) for _ in range(5)][::2] + [x * 2],
    "0-dim": lambda x: (x.sum() * 2 + x.mean().exp(), x.new_tensor(3.0) * x[0]),
    "0-dim in place": lambda x: x.sum().add_(1).mul_(2),
    "zero-size matmul": lambda x: torch.zeros(3, 0) @ torch.zeros(0, 2) + x[:6].view(3, 2) * 2,
    "zero-size reductions": lambda x: (x[:0] * 2).sum() + (x[:0] * 2).prod(),
}


@pytest.mark.parametrize("fn", EMPTY.values(), ids=EMPTY)
def test_empty_and_scalars(check, fn):
    check(fn, twelve, hits=False)


def test_empty_argument(check):
    check(lambda x, y: (x + 1) * 2 + y.sum() * 0, lambda seed: (torch.empty(0, 3), torch.ones(3) * seed))
