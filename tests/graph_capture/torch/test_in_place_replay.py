"""In-place slots: an output may overwrite an input only where no element is read after its place was written."""

import pytest
import torch
import torch.nn.functional as F


def _made(x):
    """A tensor of the pass with a buffer of its own, in which it may be overwritten."""
    return x * 1.5


# Each gives wrong values if the output takes y's slot.
TRAPS = {
    "transposed twin": lambda x: _made(x) + _made(x).t(),
    "same tensor transposed": lambda x: (lambda y: y + y.t())(_made(x)),
    "first row": lambda x: (lambda y: y / y[0])(_made(x)),
    "last column": lambda x: (lambda y: y * y[:, -1:])(_made(x)),
    "where with transpose": lambda x: (lambda y: torch.where(y > 0, y, y.t()))(_made(x)),
    "transposed only": lambda x: (lambda y: y.t() + 1.0)(_made(x)),
    "transposed, dense in another order": lambda x: (lambda y: y.t().exp())(_made(x)),
    "flipped view by as_strided": lambda x: (lambda y: y + y.flatten()[5].expand_as(y))(_made(x)),
    "expanded": lambda x: (lambda y: y[:1].expand(6, 6) + y)(_made(x)),
    "overlapping as_strided": lambda x: (lambda y: y.as_strided((6, 6), (1, 1)) * y)(_made(x)),
    "overlapping as_strided alone": lambda x: (lambda y: torch.sin(y.as_strided((6, 6), (1, 1))))(_made(x)),
    "two views of one storage": lambda x: (lambda y: torch.atan2(y[:3], y[3:]))(_made(x)),
    "view that outlives": lambda x: (lambda y: (lambda v, z: z + v)(y.view(-1)[:6], torch.exp(y)))(_made(x)),
    "view kept, base dropped": lambda x: (lambda v: (torch.exp(v), v.sum())[::-1])(_made(x).view(36)),
    "both arguments one tensor": lambda x: (lambda y: y * y)(_made(x)),
    "read again later": lambda x: (lambda y: (torch.exp(y) * 2, y + 1))(_made(x)),
    "dtype of the same size": lambda x: (lambda y: y.to(torch.int32) + 1)(_made(x)),
    "comparison to a smaller dtype": lambda x: (lambda y: y > y.t())(_made(x)),
    "reinterpreted": lambda x: (lambda y: y.view(torch.int32) + 1)(_made(x)),
    "scalar of itself": lambda x: (lambda y: y + y.view(-1)[0])(_made(x)),
    "sum of itself": lambda x: (lambda y: y / y.sum(0, keepdim=True))(_made(x)),
    "addcmul with itself": lambda x: (lambda y: torch.addcmul(y, y.t(), y))(_made(x)),
    "lerp with a view": lambda x: (lambda y: torch.lerp(y, y.t(), 0.3))(_made(x)),
    "clamp by own rows": lambda x: (lambda y: torch.clamp(y, max=y[0]))(_made(x)),
}


@pytest.mark.parametrize("fn", TRAPS.values(), ids=TRAPS)
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "own bytes"])
def test_traps(check, normal, fn, in_place):
    check(fn, normal((6, 6)), in_place=in_place)


def test_chain_works_in_place(check, normal):
    def chain(x):
        y = x + 1
        for _ in range(4):
            y = torch.tanh(y * 1.1)
        return y @ y

    graph = check(chain, normal((32, 32)))
    apart = check(chain, normal((32, 32)), in_place=False)
    assert graph.report()["in_place_buffers"] > 0
    assert apart.report()["in_place_buffers"] == 0
    assert graph.report()["arena_bytes"] < apart.report()["arena_bytes"]


def test_in_place_never_needs_more(check, normal):
    def mixed(x):
        y = F.gelu(x @ x)
        return (y + y.t()).softmax(-1) * 2 @ x

    small = check(mixed, normal((16, 16))).report()
    large = check(mixed, normal((16, 16)), in_place=False).report()
    assert small["arena_bytes"] <= large["arena_bytes"]


PERMUTED = {
    "channels last": (lambda x: F.relu(x.contiguous(memory_format=torch.channels_last) + 1) * 2, (2, 3, 4, 5)),
    "convnext block": (lambda x: (lambda y: x + F.gelu(F.layer_norm(y, (3,)) * 2).permute(0, 3, 1, 2) * 0.5)(
        (x * 1.1).permute(0, 2, 3, 1)), (2, 3, 4, 4)),
    "swin window": (lambda x: (lambda y: torch.roll(y, (1, 1), (2, 3)).permute(0, 2, 3, 1) * 2 + 1)(x * 2), (1, 4, 4, 4)),
    "permuted input and dense output": (lambda x: (lambda y: y.permute(2, 0, 1).add(1).mul(2).contiguous() - 1)(x * 2), (3, 4, 5)),
    "permuted square": (lambda x: (lambda y: y.permute(1, 0, 2) * 2 + y)(x * 2), (4, 4, 3)),
}


@pytest.mark.parametrize("fn, shape", PERMUTED.values(), ids=PERMUTED)
def test_permuted(check, normal, fn, shape):
    check(fn, normal(shape))


def test_permuted_argument(check, normal):
    check(lambda x: torch.exp(x * 2) + 1, lambda seed: (normal((4, 5, 6))(seed)[0].permute(2, 0, 1),))


def test_channels_last_argument(check, normal):
    conv = torch.nn.Conv2d(3, 4, 3, padding=1).eval().to(memory_format=torch.channels_last)
    check(lambda x: F.relu(conv(x) * 2), lambda seed: (normal((2, 3, 8, 8))(seed)[0].to(memory_format=torch.channels_last),))


FOREACH = {
    "foreach add": lambda x: torch._foreach_add([x * 2, x * 3], 1.0),
    "foreach add list": lambda x: (lambda a, b: torch._foreach_add([a, b], [b, a]))(x * 2, x * 3),
    "foreach in place": lambda x: (lambda a: (torch._foreach_mul_(a, 2.0), [t + 1 for t in a])[1])([x * 2, x * 3]),
    "foreach of transposes": lambda x: (lambda a: torch._foreach_add([a, a.t()], [a.t(), a]))(x * 2),
    "foreach norm": lambda x: torch._foreach_norm([x * 2, x * 3]),
}


@pytest.mark.parametrize("fn", FOREACH.values(), ids=FOREACH)
def test_foreach(check, normal, fn):
    check(fn, normal((5, 5)))


def _out_fresh(x):
    out = torch.empty(5, 5)
    torch.add(x * 2, 1, out=out)
    return out * 2


def _out_resized(x):
    out = torch.empty(0)
    torch.mul(x, 2, out=out)
    return out + 1


def _out_of_view(x):
    base = torch.zeros(10, 5)
    torch.add(x, 1, out=base[5:])
    return base


def _out_over_input(x):
    y = x * 2
    torch.exp(y, out=y)
    return y


def _out_several(x):
    values, indices = torch.empty(5), torch.empty(5, dtype=torch.int64)
    torch.max(x * 2, 0, out=(values, indices))
    return values + 1, indices


def _view_written(x):
    y = x * 2
    y[1:3].add_(5)
    y.t()[0].mul_(3)
    y[:, 2] = y[2]
    return y.exp()


def _written_after_view(x):
    y = x * 2
    v = y.view(-1)
    y.relu_()
    return v + 1


def _written_then_twin(x):
    y = x * 2
    z = y + 1
    y.zero_()
    return z * 2, y


def _overwritten_while_view_lives(x):
    y = x * 2
    z = y.detach()
    w = torch.exp(y)
    z.add_(w)
    return y + w


WRITES = {f.__name__.strip("_"): f for f in (_out_fresh, _out_resized, _out_of_view, _out_over_input, _out_several, _view_written,
                                             _written_after_view, _written_then_twin, _overwritten_while_view_lives)}


@pytest.mark.parametrize("fn", WRITES.values(), ids=WRITES)
def test_writes(check, normal, fn):
    check(fn, normal((5, 5)), misses=True)
