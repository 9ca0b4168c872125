"""What a pass computes from constants alone is computed once; nothing that a write, state or a random op reaches is."""

import pytest
import torch
from torch import nn


def ops(fn, *args):
    from livepool.capture import _capture

    return _capture(fn, args, {}).report()["ops"]


def test_constants_cost_no_ops(check, normal):
    def fn(x):
        positions = torch.arange(4) * torch.tensor([2, 2, 2, 2])
        return x + positions

    graph = check(fn, normal((4,)), hits=False)
    assert graph.report()["ops"] == 1


def test_a_causal_mask_and_the_look_at_it_are_folded(check, normal):
    def fn(x):
        mask = torch.arange(4)[:, None] >= torch.arange(4)[None, :]
        if not mask.all():  # a host read of a constant
            x = x.masked_fill(~mask, float("-inf"))
        return x.softmax(-1)

    graph = check(fn, normal((4, 4)))
    assert graph.report()["ops"] == 2


def test_a_large_result_is_made_anew(check, normal):
    """Kept, its 400 KB would be held for ever."""
    graph = check(lambda x: x + torch.arange(100_000), normal((100_000,)))
    assert graph.report()["ops"] == 2


def test_what_is_written_to_is_made_anew(check, normal):
    def fn(x):
        total = torch.zeros(4)
        total += x
        return total * 1.0

    check(fn, normal((4,)))


def test_a_constant_output_is_the_callers(livepool, same):
    graph = livepool.capture(lambda x: (torch.arange(3), x * 1), torch.ones(2))
    first, _ = graph.replay(torch.zeros(2))
    first += 7
    second, _ = graph.replay(torch.zeros(2))
    same(second, torch.arange(3))


def test_state_is_read_in_each_pass(livepool, same):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(3))

        def forward(self, x):
            return x * (self.scale + torch.ones(3))

    module = Module().eval()
    graph = livepool.capture(module, torch.ones(3))
    module.scale.fill_(5)
    same(graph.replay(torch.ones(3)), torch.full((3,), 6.0))


def test_random_numbers_are_drawn_in_each_pass(check, normal):
    check(lambda x: x + torch.rand(4) * torch.ones(4), normal((4,)), hits=False)


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_folded_in_one_mode_and_replayed_in_another(livepool, same, mode):
    def fn(x):
        return x.add(torch.arange(3) * 2).mul_(torch.tensor([1.0, 2.0, 3.0]))

    with getattr(torch, mode)():
        graph = livepool.capture(fn, torch.zeros(3))
    for other in (torch.no_grad, torch.inference_mode):
        with other():
            same(graph.replay(torch.ones(3)), fn(torch.ones(3)))
