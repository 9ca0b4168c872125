"""livepool.consume(): a call of a wrapped module whose arguments are given up."""

import weakref

import pytest
import torch
from torch import nn

from livepool_memory_events import peak_bytes

MIB = 1 << 20


class Widen(nn.Module):
    """Its argument is used once, at the beginning; the output, as large, is made at the end."""

    def forward(self, x, scale: float = 1.0):
        return x.sum(0, keepdim=True).expand_as(x).contiguous() * scale


def large(seed=0):
    return torch.randn(64, MIB // 64, generator=torch.Generator().manual_seed(seed))  # 4 MiB


@pytest.fixture
def model(wrapped):
    """Wrapped, captured, and checked."""
    twin = wrapped(Widen().eval())
    for seed in (1, 2, 3):
        twin(large(seed))
    return twin


def replays(livepool, model):
    return livepool.explain(model).replayed


def test_the_peak_is_lower_and_the_result_the_same(livepool, model, same):
    def consume():  # the profiler counts the free of what it has seen allocated
        arguments = [large(7)]
        output = livepool.consume(model, arguments)
        assert arguments == []
        return output

    kept, peak_of_call = peak_bytes(lambda: model(large(7)))
    before = replays(livepool, model)
    output, peak = peak_bytes(consume)
    assert replays(livepool, model) == before + 1
    same(output, Widen()(large(7)))
    same(kept, output)
    assert peak <= peak_of_call - 4 * MIB


@pytest.mark.gpu
def test_the_peak_is_lower_on_a_gpu(livepool, same):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    livepool.install("cuda")
    model = livepool.wrap(Widen().eval(), capture_after=1)
    for seed in (1, 2, 3):
        model(large(seed).cuda())

    def peak(call):
        arguments = [large(7).cuda()]
        torch.cuda.reset_peak_memory_stats()
        output = call(arguments)
        return output, torch.cuda.max_memory_allocated()

    kept, peak_of_call = peak(lambda arguments: model(*arguments))
    del kept
    output, lower = peak(lambda arguments: livepool.consume(model, arguments))
    same(output.cpu(), model(large(7).cuda()).cpu())
    assert lower <= peak_of_call - 4 * MIB


def test_by_name(livepool, model, same):
    model(x=large(1), scale=2.0), model(x=large(2), scale=2.0)
    arguments = {"x": large(5), "scale": 2.0}
    same(livepool.consume(model, arguments), Widen()(large(5), 2.0))
    assert arguments == {}


@pytest.mark.parametrize("wrap", [True, False])
def test_a_call_that_no_graph_serves(livepool, same, wrap):
    model = Widen().eval()
    if wrap:
        livepool.wrap(model)
    arguments = [large(1)]
    same(livepool.consume(model, arguments), Widen()(large(1)))
    assert arguments == []


def test_hooks_run(livepool, model, same):
    seen = []
    model.register_forward_hook(lambda _, args, output: seen.append(args))
    same(livepool.consume(model, [large(4)]), Widen()(large(4)))
    assert len(seen) == 1


def test_a_graph_that_may_be_given_up_keeps_them(livepool, wrapped, same):
    class Branch(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum().item() > 0 else x * 3

    model = wrapped(Branch().eval())
    for value in (1.0, 1.0, 1.0):
        model(torch.full((4,), value))
    same(livepool.consume(model, [torch.full((4,), -1.0)]), torch.full((4,), -3.0))


def test_replaced_weights_are_seen(livepool, wrapped, same):
    plain = nn.Linear(8, 8).eval()
    model = wrapped(plain)
    x = torch.randn(2, 8)
    for _ in range(3):
        model(torch.randn(2, 8))
    model.weight = nn.Parameter(torch.randn(8, 8))
    expected = nn.functional.linear(x, model.weight, model.bias)
    same(livepool.consume(model, [x.clone()]), expected)


def test_a_tensor_that_somebody_else_holds_stays(livepool, model, same):
    x = large(3)
    livepool.consume(model, [x])
    same(x, large(3))


def test_an_argument_is_gone_after_the_call(livepool, model):
    arguments = [large(3)]
    gone = weakref.ref(arguments[0])
    livepool.consume(model, arguments)
    assert gone() is None


def test_other_containers_are_refused(livepool, model):
    with pytest.raises(livepool.InvalidInput, match="in a list, or by name in a dict, not in a tuple"):
        livepool.consume(model, (large(1),))
