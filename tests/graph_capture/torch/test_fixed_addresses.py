"""Passes with fixed addresses, as a CUDA graph needs them, run op by op: arguments are copied into slots, outputs lie in
slots and are copied out. All of it on the CPU; only the graph itself is missing (mode="rehearsal")."""

import pytest
import torch
from torch import nn

from test_modules_replay import MODULES
from test_random_programs import N, make_program


@pytest.fixture
def rehearse(check):
    def run(fn, make_inputs, **options):
        graph = check(fn, make_inputs, mode="rehearsal", **options)
        report = graph.report()
        assert report["not_launched"] == "" and report["launches"] == 0
        return graph

    return run


@pytest.mark.parametrize("make, shape", MODULES.values(), ids=MODULES)
def test_module(rehearse, normal, make, shape):
    torch.manual_seed(4)
    rehearse(make().eval(), normal(shape) if shape else normal((4, 8), (4, 8)), hits=False)


@pytest.mark.parametrize("seed", range(40))
def test_random_program(rehearse, normal, seed):
    rehearse(make_program(seed), normal((N, N), (N, N)), hits=False, misses=True, in_place=seed % 4 != 0)


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every second column": lambda x: x[:, ::2],
    "the last rows": lambda x: x[4:],
    "expanded": lambda x: x[0].expand(5, 8),
    "channels last": lambda x: x.view(1, 2, 4, 8).to(memory_format=torch.channels_last),
    "one number": lambda x: x[3, 3],
    "no elements": lambda x: x[:0],
    "complex, lazily conjugated": lambda x: torch.complex(x, -x).conj(),
    "booleans": lambda x: x > 0,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_an_argument_stays(rehearse, normal, layout):
    def make(seed):
        return (LAYOUTS[layout](*normal((8, 8))(seed)),)

    rehearse(lambda x: (x * 2, x.flatten(), x + 1), make, hits=False)


def test_views_into_an_argument_that_begins_later(rehearse, normal):
    def make(seed):
        return (normal((10,))(seed)[0][2:],)

    rehearse(lambda x: (x[3:] * 2, x.view(2, 4).t() + 1, x.as_strided((2,), (3,), 2) * 1.0), make)


def test_arguments_on_one_storage(rehearse, normal):
    def make(seed):
        x, = normal((4, 4))(seed)
        return x, x, x[1:]

    rehearse(lambda a, b, c: a + b + c.sum(), make)


def test_an_argument_that_is_written_to_is_the_callers(rehearse, normal):
    rehearse(lambda cache, x: (cache.add_(x), x * 2), normal((4, 4), (4, 4)))
    rehearse(lambda cache, x: cache[1:3].copy_(x[:2]).sum(), normal((4, 4), (4, 4)))


def test_outputs_keep_what_they_share(livepool, normal, same):
    def fn(x):
        y = x * 2
        return y, y.t(), y[1], x + 1

    graph = _rehearsal(fn, normal((4, 4))(0))
    for seed in (1, 2):
        x, = normal((4, 4))(seed)
        y, transposed, row, other = graph.replay(x)
        same((y, transposed, row, other), fn(x))
        assert y.untyped_storage().data_ptr() == transposed.untyped_storage().data_ptr() == row.untyped_storage().data_ptr()
        assert other.untyped_storage().data_ptr() != y.untyped_storage().data_ptr()


def test_an_argument_and_state_come_back_as_themselves(livepool, normal):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4))

        def forward(self, x):
            return x, x[1], self.weight, self.weight.t(), x @ self.weight

    module = Module().eval()
    graph = _rehearsal(module, normal((4, 4))(0))
    for seed in (1, 2):
        x, = normal((4, 4))(seed)
        itself, row, weight, transposed, _ = graph.replay(x)
        assert itself is x and weight is module.weight
        assert row.data_ptr() == x[1].data_ptr() and transposed.data_ptr() == module.weight.data_ptr()


def test_outputs_outlive_later_replays(livepool, normal):
    graph = _rehearsal(lambda x: x * 2, normal((64,))(0))
    inputs = [normal((64,))(seed)[0] for seed in range(1, 6)]
    outputs = [graph.replay(x) for x in inputs]
    for x, output in zip(inputs, outputs):
        assert torch.equal(output, x * 2)


def test_an_argument_needs_a_slot_until_its_last_use_only(livepool):
    """x is 4 units, dead before the two buffers of 4 units are."""
    def fn(x):
        small = x.sum()
        large = small.expand(1024).contiguous()
        return (large.cumsum(0) * 1.5).sum()

    graph = _rehearsal(fn, (torch.ones(1024),))
    report = graph.report()
    assert report["arena_bytes"] < 3 * 4096


def test_inference_mode_of_the_caller_decides_the_kind_of_outputs(livepool, normal):
    graph = _rehearsal(lambda x: x * 2, normal((4,))(0))
    for seed in (1, 2, 3):
        assert not graph.replay(*normal((4,))(seed)).is_inference()
        with torch.inference_mode():
            assert graph.replay(*normal((4,))(seed)).is_inference()


def test_a_pass_that_cannot_be_a_graph_is_replayed(livepool, same, capfd):
    """The host looks at a result, so nothing is copied in or out; on the CPU nothing can be a graph."""
    def branches(x):
        return x * 2 if x.sum().item() > 0 else x

    graph = livepool.capture(branches, torch.ones(4), mode="graph")
    assert "CPU" in graph.report()["not_launched"]
    assert capfd.readouterr().err.count("not as a CUDA graph") == 1
    graph = _rehearsal(branches, (torch.ones(4),))
    assert "aten::_local_scalar_dense" in graph.report()["not_launched"]
    same(graph.replay(torch.full((4,), 1.0)), torch.full((4,), 2.0))


def test_modes_are_checked(livepool):
    with pytest.raises(livepool.InvalidInput):
        livepool.capture(lambda x: x * 2, torch.ones(2), mode="cuda")


def _rehearsal(fn, args):
    from livepool.capture import _capture

    return _capture(fn, args, {}, mode="rehearsal")
