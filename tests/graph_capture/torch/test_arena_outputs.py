"""outputs="arena": a replay's outputs are the arena's own bytes, good until the next pass of the thread. The rules: Note [Loans] in
allocator/pool/include/livepool/pool/loan.h."""

import gc
import os
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

from test_modules_replay import MODULES
from test_random_programs import N, make_program

ROWS = 1024  # 4 KiB of float32


def checked_double(livepool):
    """x -> 2 x for ROWS numbers, with the check over and no tensor on loan."""
    graph = livepool.capture(lambda x: (x + x).mul(1.0), torch.ones(ROWS), outputs="arena")
    graph.replay(full(3))
    return graph


@pytest.fixture
def double(livepool):
    yield checked_double(livepool)
    gc.collect()


def full(value):
    return torch.full((ROWS,), float(value))


@pytest.mark.parametrize("make, shape", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("mode", ["replay", "rehearsal"])
def test_module(check, normal, make, shape, mode):
    torch.manual_seed(4)
    check(make().eval(), normal(shape) if shape else normal((4, 8), (4, 8)), hits=False, outputs="arena", mode=mode)


@pytest.mark.parametrize("seed", range(40))
def test_random_program(check, normal, seed):
    check(make_program(seed), normal((N, N), (N, N)), hits=False, misses=True, outputs="arena", in_place=seed % 4 != 0)


# Poison makes copies of outputs (Note [Poisoned loans]); these cases are about the bytes in the arena.

def lie_in_the_arena_and_cost_no_other_memory(livepool):
    double = checked_double(livepool)
    hits = double.report()["hits"]
    output = double.replay(full(1))
    assert double.report()["hits"] - hits >= 2 and double.report()["misses"] == 0
    assert double.report()["arena_bytes"] >= output.numel() * 4
    assert livepool.stats()["live_bytes"] >= output.numel() * 4


def are_good_until_the_next_pass(livepool):
    double = checked_double(livepool)
    output = double.replay(full(1))
    junk = [torch.rand(ROWS) for _ in range(4)]  # upstream's memory, which an arena does not share
    assert torch.equal(output, full(2)) and junk
    later = double.replay(full(5))
    assert torch.equal(later, full(10))
    assert output.data_ptr() == later.data_ptr()  # so the contract is what keeps them apart


def free_nothing_when_dropped_late(livepool):
    double = checked_double(livepool)
    first = double.replay(full(1))
    second = double.replay(full(2))
    live = livepool.stats()["live_bytes"]
    del first
    assert livepool.stats()["live_bytes"] == live
    assert torch.equal(second, full(4))
    del second
    assert livepool.stats()["live_bytes"] == live - ROWS * 4


@pytest.mark.parametrize(
    "case", [lie_in_the_arena_and_cost_no_other_memory, are_good_until_the_next_pass, free_nothing_when_dropped_late],
    ids=lambda case: case.__name__)
def test_outputs(unpoisoned, case):
    unpoisoned(case)


def test_a_trim_while_tensors_are_out(livepool, double):
    """Neither one on loan nor one that outlived its loan loses its memory."""
    late = double.replay(full(1))
    output = double.replay(full(2))
    livepool.trim()
    assert torch.equal(output, full(4))
    del output
    livepool.trim()
    late.sum()  # some numbers, and no fault
    del late
    livepool.trim()
    assert torch.equal(double.replay(full(2)), full(4))


def test_the_graph_may_go_before_its_outputs(livepool):
    graph = livepool.capture(lambda x: x * 2, torch.ones(ROWS), outputs="arena")
    graph.replay(full(1))
    output = graph.replay(full(3))
    del graph
    gc.collect()
    livepool.trim()
    assert torch.equal(output, full(6))


def test_an_output_as_the_next_argument(double):
    """It gets memory of its own before the pass, and stays good."""
    values = [double.replay(full(1))]
    for _ in range(6):
        values.append(double.replay(values[-1]))
    for i, value in enumerate(values):
        assert torch.equal(value, full(2 ** (i + 1))), i


def test_a_view_of_an_output_as_the_next_argument(livepool, same):
    def fn(x):
        y = x * 2
        return y, y[1:3].t()

    graph = livepool.capture(fn, torch.ones(4, 4), outputs="arena")
    whole, part = graph.replay(torch.rand(4, 4))
    for _ in range(3):
        whole, part = graph.replay(torch.rand(4, 4))
        assert part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    expected = fn(whole.clone())
    kept = part.clone()
    same(graph.replay(whole), expected)
    assert torch.equal(part, kept)  # it went along with the storage


def test_an_output_that_the_next_pass_writes_to(livepool, same):
    step = livepool.capture(lambda cache, x: (cache.add_(x), x * 3)[1], torch.zeros(8), torch.ones(8), outputs="arena")
    make = livepool.capture(lambda x: x * 2, torch.ones(8), outputs="arena")
    make.replay(torch.rand(8))
    for seed in (1, 2, 3):
        cache = make.replay(torch.full((8,), 1.0))
        want = torch.full((8,), 2.0 + seed)
        got = step.replay(cache, torch.full((8,), float(seed)))
        same(got, torch.full((8,), 3.0 * seed))
        assert torch.equal(cache, want)


def test_an_output_as_an_argument_of_a_pass_that_is_given_up(livepool):
    """The callable then runs on the same argument."""
    make = livepool.capture(lambda x: x * 2, torch.ones(ROWS), outputs="arena")
    branch = livepool.capture(lambda x: (x + 1) * 3 if (x * 2).sum().item() > 0 else x, torch.ones(ROWS))
    make.replay(full(1))
    argument = make.replay(full(-1))
    with pytest.raises(livepool.GuardFailed):
        branch.replay(argument)
    assert torch.equal(argument, full(-2))


def test_an_output_as_state_of_a_later_capture(livepool, same):
    make = livepool.capture(lambda x: x * 2, torch.ones(ROWS), outputs="arena")
    make.replay(full(1))

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", make.replay(full(4)))

        def forward(self, x):
            return x * 3 + self.shift

    module = Module().eval()
    graph = livepool.capture(module, full(1))
    for value in (1, 2, 3):
        make.replay(full(9))
        same(graph.replay(full(value)), full(3 * value + 8))


def test_an_argument_and_state_come_back_as_themselves(livepool, normal):
    weight = nn.Parameter(torch.randn(4, 4))
    graph = livepool.capture(lambda x: (x, x[1], weight, x @ weight), *normal((4, 4))(0), outputs="arena")
    for seed in (1, 2, 3):
        x, = normal((4, 4))(seed)
        itself, row, state, _ = graph.replay(x)
        assert itself is x and row.data_ptr() == x[1].data_ptr() and state is weight


def test_threads_do_not_end_each_others_loans(double):
    errors = []

    def work(value):
        try:
            with torch.no_grad():
                for step in range(60):
                    output = double.replay(full(value + step))
                    torch.rand(64).sum()
                    if not torch.equal(output, full(2 * (value + step))):
                        errors.append((value, step, output[:3]))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    mine = double.replay(full(7))
    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert torch.equal(mine, full(14))


def test_a_scope_of_plain_code_is_a_pass_too(livepool, double):
    """Its slots come from the arena; what it computes is right, and so is what it leaves."""
    for step in range(8):
        output = double.replay(full(step))
        assert torch.equal(output, full(2 * step))
        with livepool.pass_scope("arena outputs"):
            value = torch.ones(ROWS)
            for _ in range(12):
                value = value + 1
            assert value.sum().item() == 13 * ROWS


@pytest.mark.parametrize("capture_after", [1, 2])
def test_wrapped(wrapped, normal, same, capture_after):
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)).eval()
    twin = wrapped(model, capture_after=capture_after, outputs="arena")
    value = expected = normal((4, 8))(0)[0]
    for seed in range(6):
        value, expected = twin(value), model(expected)
        same(value, expected)


def test_the_option_is_checked(livepool):
    with pytest.raises(livepool.InvalidInput, match="'fresh' or 'arena', not 'slots'"):
        livepool.capture(lambda x: x * 2, torch.ones(2), outputs="slots")


POISONED = """
import torch, livepool
livepool.install("cpu")
with torch.no_grad():
    graph = livepool.capture(lambda x: x * 2, torch.ones(64), outputs="arena", mode=MODE)
    graph.replay(torch.full((64,), 3.0))
    first = graph.replay(torch.full((64,), 4.0))
    view = first[3:]
    assert (first == 8).all()
    second = graph.replay(torch.full((64,), 5.0))
    assert first.isnan().all() and view.isnan().all(), first
    assert (second == 10).all(), second
    third = graph.replay(second)
    assert (third == 20).all() and (second == 10).all(), "an argument of the pass is no misuse"
    fourth = graph.replay(torch.full((64,), 1.0))
    assert third.isnan().all() and (second == 10).all() and (fourth == 2).all()
    del first, view, third
    assert (graph.replay(torch.full((64,), 6.0)) == 12).all()
print("shown")
"""


@pytest.mark.parametrize("mode", ["replay", "rehearsal"])
def test_poison_shows_a_tensor_that_is_used_too_late(livepool, mode):
    run = subprocess.run([sys.executable, "-c", POISONED.replace("MODE", repr(mode))], capture_output=True, text=True,
                         env={**os.environ, "LIVEPOOL_FILL": "nan"}, check=False)
    assert run.stdout == "shown\n", run.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["replay", "graph"])
def test_on_a_gpu(livepool, mode):
    """Chains, a late drop, a trim with tensors out, and passes of another stream after one that still reads an output."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    livepool.install("cuda")
    size = 1 << 20

    def number(value):
        return torch.full((size,), float(value), device="cuda")

    graph = livepool.capture(lambda x: (x + x).mul(1.0), number(1), mode=mode, outputs="arena")
    graph.replay(number(3))
    first = graph.replay(number(1))
    second = graph.replay(first)
    third = graph.replay(number(8))
    assert (first == 2).all() and (third == 16).all()
    del second
    assert (third == 16).all()
    if mode == "replay":  # a graph pins the arena
        gc.collect()
        livepool.trim()
    assert (third == 16).all()
    other = torch.cuda.Stream()
    for step in range(1, 50):
        output = graph.replay(number(step))
        total = output.clone()
        for _ in range(20):
            total += output
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            graph.replay(number(-1))
        torch.cuda.current_stream().wait_stream(other)
        assert (total == 42 * step).all(), step
