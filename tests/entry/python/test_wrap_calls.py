"""Calls of a wrapped module: what is captured, what is replayed, what runs as it is, and that nobody can tell."""

import dataclasses
import logging
import os
import subprocess
import sys

import pytest
import torch
import torch.utils.flop_counter
import torch.nn.functional as F
from torch import nn


class Fn(nn.Module):
    """A module with a weight, whose forward is the function that it is given."""

    def __init__(self, forward):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(16.0).view(4, 4) / 10)
        self.forward_of = forward

    def forward(self, *args, **kwargs):
        return self.forward_of(self, *args, **kwargs)


def rows(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))


def linear(self, x):
    return F.linear(F.gelu(F.linear(x, self.weight)), self.weight)


@pytest.fixture
def make(livepool):
    """make(forward, **options): a module in eval mode, wrapped, captured at the first call unless told otherwise."""

    def make(forward, capture_after=1, **options):
        return livepool.wrap(Fn(forward).eval(), capture_after=capture_after, **options)

    return make


@pytest.fixture
def replays(livepool):
    return lambda module: livepool.explain(module).replayed


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple | None = None


RESULTS = {
    "tensor": linear,
    "dict": lambda self, x: {"a": linear(self, x), "b": [x + 1, None, 3]},
    "dataclass": lambda self, x: Output(linear(self, x), (x + 1, x * 2)),
    "named tuple of torch": lambda self, x: linear(self, x).max(0),
    "its input": lambda self, x: (x, x[0], linear(self, x)),
    "a parameter": lambda self, x: (self.weight, linear(self, x)),
}


@pytest.mark.parametrize("forward", RESULTS.values(), ids=RESULTS)
def test_results(make, replays, same, forward):
    module, plain = make(forward), Fn(forward).eval()
    for seed in range(4):
        got = module(rows(3, seed))
        want = plain(rows(3, seed))
        assert type(got) is type(want)
        same(got, want)
    assert replays(module) == 3


def test_identity_of_what_is_passed_through(make):
    module = make(lambda self, x: (x, self.weight))
    for seed in range(3):
        x = rows(3, seed)
        out, weight = module(x)
        assert out is x and weight is module.weight


def test_arguments(make, replays, same):
    """Each line is a signature of its own; keywords in any order are the same."""

    def forward(self, x, mask=None, *, scale=1.0, more=()):
        y = linear(self, x) * scale
        return y + sum(more) if mask is None else y.masked_fill(mask, 0.0)

    module, plain = make(forward), Fn(forward).eval()
    for seed in range(3):
        x, mask = rows(3, seed), rows(3, seed + 9) > 0
        for args, kwargs in [((x,), {}), ((x, None), {}), ((x, mask), {}), ((x,), {"mask": mask, "scale": 2.0}),
                             ((x,), {"scale": 2.0, "mask": mask}), ((x,), {"scale": 3.0}), ((x,), {"scale": float("nan")}),
                             ((x,), {"more": [x, x]}), ((x,), {"more": (x, x)}), ((x,), {"more": [x, x + 1]})]:
            same(module(*args, **kwargs), plain(*args, **kwargs))
    assert replays(module) == 3 * 10 - 9  # of 9 signatures, each captured once


def test_what_tells_signatures_apart(make, livepool, same):
    module = make(lambda self, x, flag=None: linear(self, x).double() * (2 if flag else 3))
    calls = {
        "plain": lambda x: (x,), "other rows": lambda x: (torch.cat([x, x]),), "strides": lambda x: (x.t().contiguous().t(),),
        "offset": lambda x: (torch.cat([x, x])[3:],), "True": lambda x: (x, True), "1": lambda x: (x, 1), "1.0": lambda x: (x, 1.0),
        "dtype": lambda x: (x, torch.float16), "text": lambda x: (x, "a"),
    }
    plain = Fn(module.forward_of).eval()
    for seed in range(3):
        for call in calls.values():
            same(module(*call(rows(3, seed))), plain(*call(rows(3, seed))))
    report = livepool.explain(module)
    assert len(report.signatures) == len(calls) and report.replayed == 2 * len(calls)


def test_two_shapes_interleaved(make, replays, same):
    module, plain = make(linear), Fn(linear).eval()
    for seed in range(4):
        for n in (2, 5):
            same(module(rows(n, seed)), plain(rows(n, seed)))
    assert replays(module) == 6


def test_captured_at_the_sighting_that_was_asked_for(make, livepool):
    module = make(linear, capture_after=3)
    statuses = []
    for seed in range(4):
        module(rows(3, seed))
        statuses.append(livepool.explain(module).signatures[0].status)
    assert statuses == ["seen", "seen", "captured", "captured"]
    report = livepool.explain(module)
    assert report.replayed == 1 and report.as_is == {"not seen often enough yet": 2}


def test_autocast_and_settings_are_part_of_the_signature(make, livepool, same):
    module, plain = make(linear), Fn(linear).eval()
    for seed in range(3):
        same(module(rows(3, seed)), plain(rows(3, seed)))
        with torch.autocast("cpu", torch.bfloat16):
            got = module(rows(3, seed))
            same(got, plain(rows(3, seed)))
            assert got.dtype == torch.bfloat16
        torch.backends.mkldnn.set_flags(_enabled=False)
        try:
            same(module(rows(3, seed)), plain(rows(3, seed)))
        finally:
            torch.backends.mkldnn.set_flags(_enabled=True)
    assert len(livepool.explain(module).signatures) == 3 and livepool.explain(module).replayed == 6


def test_inference_mode_and_no_grad_share_a_graph(make, livepool, same):
    module, plain = make(linear), Fn(linear).eval()
    for seed in range(3):
        with torch.inference_mode(seed % 2 == 0):
            got = module(rows(3, seed))
            assert got.is_inference() == (seed % 2 == 0)
            same(got, plain(rows(3, seed)))
    assert len(livepool.explain(module).signatures) == 1


class TestRunsAsItIs:
    def test_in_grad_mode(self, make, livepool, same, caplog):
        module, plain = make(linear), Fn(linear).eval()
        with torch.enable_grad():
            for seed in range(3):
                module(rows(3, seed)).sum().backward()
                plain(rows(3, seed)).sum().backward()
        same(module.weight.grad, plain.weight.grad)
        assert livepool.explain(module).as_is == {"grad mode": 3} and not caplog.records

    def test_in_training_mode(self, make, livepool, same, caplog):
        """The module's own flag or a submodule's; back in eval mode the graph is there again."""

        def forward(self, x):
            return self.dropout(linear(self, x))

        module = make(forward)
        module.dropout = nn.Dropout(0.5).eval()
        want = module(rows(3))
        module(rows(3, 1))
        module.train()
        assert (module(torch.ones(50, 4)) == 0).any()
        module.eval()
        same(module(rows(3)), want)
        assert livepool.explain(module).replayed == 2
        module.dropout.train()
        for _ in range(6):
            assert (module(torch.ones(50, 4)) == 0).any()
        assert not (module(rows(50)) == want.sum()).all()
        module.eval()
        for _ in range(60):
            same(module(rows(3)), want)
        assert livepool.explain(module).replayed > 2 and not caplog.records

    def test_inside_disabled(self, make, livepool):
        module = make(linear)
        with livepool.disabled():
            module(rows(3))
            with livepool.disabled():
                pass
            module(rows(3))
        module(rows(3))
        assert livepool.explain(module).replayed == 0 and len(livepool.explain(module).signatures) == 1

    def test_what_is_refused_is_said_once_for_each_reason(self, make, livepool, same, caplog):
        def forward(self, x):
            return x * sum(x.tolist()[0]) if x.shape[0] < 5 else x.to_sparse().to_dense()

        module, plain = make(forward), Fn(forward).eval()
        for seed in range(3):
            for n in (2, 3, 5, 6):
                same(module(rows(n, seed)), plain(rows(n, seed)))
        reasons = {record.getMessage().split(": ", 1)[1] for record in caplog.records}
        assert len(caplog.records) == len(reasons) <= 3 and any("tolist" in reason for reason in reasons)
        report = livepool.explain(module)
        assert [each.status for each in report.signatures] == ["refused"] * 4 and "tolist" in report.signatures[0].reason
        assert report.replayed == 0

    def test_arguments_that_no_graph_can_take(self, make, livepool, same, caplog):
        class Sub(torch.Tensor):
            pass

        module = make(lambda self, x: x.to_dense() * 2 if x.is_sparse else x * 2)
        for _ in range(2):
            assert type(module(rows(3).as_subclass(Sub))) is Sub
            same(module(rows(3).to_sparse()), rows(3) * 2)
        assert [("Sub" in r.getMessage(), "sparse" in r.getMessage()) for r in caplog.records] == [(True, False), (False, True)]
        with torch.utils.flop_counter.FlopCounterMode(display=False) as flops:
            make(linear)(rows(3))
        assert flops.get_total_flops() > 0
        torch.func.vmap(module)(rows(3))

    def test_livepool_0(self):
        code = ("import torch, livepool; livepool.install('cpu'); m = livepool.wrap(torch.nn.Linear(3, 3).eval(), capture_after=1)\n"
                "with torch.no_grad(): [m(torch.ones(1, 3)) for _ in range(3)]\n"
                "assert livepool.explain(m).as_is == {'LIVEPOOL=0': 3}, livepool.explain(m)")
        _run(code, LIVEPOOL="0")

    def test_not_installed(self):
        code = ("import torch, livepool; m = livepool.wrap(torch.nn.Linear(3, 3).eval(), capture_after=1)\n"
                "with torch.no_grad(): [m(torch.ones(1, 3)) for _ in range(3)]\nprint(livepool.explain(m))")
        result = _run(code)
        assert result.stderr.count("livepool: Linear runs as it is") == 1 and "install" in result.stderr
        assert "refused" in result.stdout


def _run(code: str, **environ: str) -> subprocess.CompletedProcess:
    import livepool

    path = os.path.dirname(os.path.dirname(livepool.__file__))
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, **environ}, capture_output=True, text=True,
                          check=True)


def test_log_info_says_one_line_for_each_signature():
    code = ("import torch, livepool; livepool.install('cpu'); m = livepool.wrap(torch.nn.Linear(3, 3).eval(), capture_after=1)\n"
            "with torch.no_grad(): [m(torch.ones(n, 3)) for _ in range(3) for n in (1, 2)]")
    lines = [line for line in _run(code, LIVEPOOL_LOG="info").stderr.splitlines() if "Linear" in line]
    assert len(lines) == 2
    for text in ("Linear(Float[1, 3])", "2 ops", "1 buffers", "bound 0 B", "arena 0 B", "captured in", "planned in", " ms"):
        assert text in lines[0]
    assert "Linear" not in _run(code, LIVEPOOL_LOG="off").stderr


class TestStateChanges:
    """The graph is dropped, and captured anew; every call gives what the module as it is now gives."""

    @pytest.mark.parametrize("change", [
        lambda m: m.load_state_dict({"weight": torch.eye(4)}),
        lambda m: m.load_state_dict({"weight": torch.eye(4)}, assign=True),
        lambda m: setattr(m, "weight", nn.Parameter(torch.eye(4) * 3)),
        lambda m: m.requires_grad_(False),
        lambda m: m.weight.data.mul_(3),
        lambda m: setattr(m.weight, "data", torch.eye(4)),
        lambda m: setattr(m, "extra", 7),
        lambda m: m.register_buffer("table", torch.eye(4)),
        lambda m: setattr(m, "forward_of", lambda self, x: x @ self.weight - 1),
    ], ids=["load_state_dict", "assign", "parameter", "requires_grad_", "bytes", "data", "attribute", "buffer", "function"])
    def test_change(self, make, replays, same, change):
        module = make(linear)
        for seed in range(3):
            module(rows(3, seed))
        change(module)
        before = replays(module)
        for seed in range(5):
            got = module(rows(3, seed))
            same(got, Fn.forward(module, rows(3, seed)))
        assert replays(module) >= before + 2

    def test_half(self, make, replays, same):
        module = make(linear)
        module(rows(3))
        module.half()
        for seed in range(4):
            got = module(rows(3, seed).half())
            same(got, Fn.forward(module, rows(3, seed).half()))
            assert got.dtype == torch.float16
        module.float()
        for seed in range(6):
            same(module(rows(3, seed)), Fn.forward(module, rows(3, seed)))
        assert replays(module) >= 3 + 2

    def test_a_module_that_changes_all_the_time_is_captured_ever_more_seldom(self, make, livepool, same):
        module = make(lambda self, x: linear(self, x) * self.step)
        for step in range(70):
            module.step = step
            same(module(rows(3, step)), Fn.forward(module, rows(3, step)))
        assert livepool.explain(module).signatures[0].captures <= 7
        for _ in range(200):
            module(rows(3))
        assert livepool.explain(module).replayed > 50

    def test_old_weights_are_not_kept(self, make):
        import gc
        import weakref

        module = make(linear)
        module(rows(3))
        old = weakref.ref(module.weight)
        module.weight = nn.Parameter(torch.eye(4))
        module(rows(3))
        gc.collect()
        assert old() is None


class TestEffectsHappenOnce:
    def test_written_state(self, make, replays, same):
        def forward(self, x):
            self.count += 1
            self.total.add_(x.sum())
            return linear(self, x) + self.count

        def build(make_module):
            module = make_module(forward)
            module.count, module.total = torch.zeros(()), torch.zeros(())
            return module

        module, plain = build(make), build(lambda f: Fn(f).eval())
        for seed in range(5):
            same(module(rows(3, seed)), plain(rows(3, seed)))
            same((module.count, module.total), (plain.count, plain.total))
        assert replays(module) == 4

    def test_python_effects_of_the_capture(self, make):
        """Refused or not, forward runs once for a call."""
        seen = []

        def forward(self, x):
            seen.append(x.shape[0])
            return x * x.tolist()[0][0] if x.shape[0] == 2 else linear(self, x)

        module = make(forward)
        module(rows(2))
        module(rows(3))
        assert seen == [2, 3]
        module(rows(2))
        assert seen == [2, 3, 2]

    def test_guard(self, make, livepool, same, caplog):
        """The other path is the module's own; the graph stays for the inputs that it fits."""

        def forward(self, x):
            y = linear(self, x)
            return y * 2 if y.sum() > 0 else y - torch.rand(3, 4)

        module, plain = make(forward), Fn(forward).eval()
        for i in range(9):
            x = rows(3, i).abs() * (-1 if i % 3 == 2 else 1)
            torch.manual_seed(i)
            got, after = module(x), torch.rand(3)
            torch.manual_seed(i)
            same((got, after), (plain(x), torch.rand(3)))
        report = livepool.explain(module)
        assert report.replayed == 5 and report.signatures[0].given_up == 3
        assert report.as_is == {"a replay was given up (GuardFailed)": 3}
        assert len(caplog.records) == 1 and "a value that it reads differs" in caplog.records[0].getMessage()

    def test_a_guard_that_fails_always_costs_little(self, make, livepool, same):
        def forward(self, x):
            return linear(self, x) * float(x[0, 0])

        module, plain = make(forward), Fn(forward).eval()
        for i in range(80):
            same(module(rows(3, i)), plain(rows(3, i)))
        report = livepool.explain(module)
        assert report.signatures[0].captures <= 5 and report.as_is["a replay was given up (GuardFailed)"] <= 40

    def test_a_failed_check_is_said_once_and_leaves_no_effects(self, make, livepool, same, caplog):
        class Holder:
            value = 1.0  # what a class holds is not watched ("Limits that stay")

        def forward(self, x):
            self.count += 1
            return linear(self, x) * Holder.value

        module = make(forward)
        module.count = torch.zeros(())
        module(rows(3))
        Holder.value = 2.0
        for i in range(1, 5):
            same(module(rows(3, i)), linear(module, rows(3, i)) * 2.0)
            assert module.count == i + 1
        assert [r.getMessage().count("the replay is wrong") for r in caplog.records] == [1]
        assert livepool.explain(module).signatures[0].status == "refused"


class TestErrors:
    def test_in_the_first_run(self, make, livepool, same):
        def forward(self, x):
            if self.broken:
                raise KeyError("mine")
            return linear(self, x)

        module = make(forward)
        module.broken = True
        for _ in range(3):
            with pytest.raises(KeyError, match="mine"):
                module(rows(3))
        module.broken = False
        for seed in range(20):
            same(module(rows(3, seed)), linear(module, rows(3, seed)))
        assert livepool.explain(module).replayed > 3

    def test_of_an_operator_in_a_replay(self, make, livepool, same):
        """The module runs, and fails as it does; the graph stays."""
        module = make(lambda self, i: F.embedding(i, self.weight) * 2)
        module(torch.tensor([0, 1]))
        same(module(torch.tensor([2, 3])), module.weight.data[2:] * 2)
        for _ in range(2):
            with pytest.raises(IndexError):
                module(torch.tensor([0, 9]))
        same(module(torch.tensor([1, 3])), module.weight.data[1::2] * 2)
        assert livepool.explain(module).replayed == 2

    def test_that_forward_catches(self, make, livepool, same, caplog):
        def forward(self, i):
            try:
                return F.embedding(i, self.weight) * 2
            except IndexError:
                return torch.full((2, 4), -1.0)

        module = make(forward)
        for index in ([0, 1], [2, 3]):
            module(torch.tensor(index))
        same(module(torch.tensor([0, 9])), torch.full((2, 4), -1.0))
        assert len(caplog.records) == 1 and "IndexError" in caplog.records[0].getMessage()

    def test_draws_are_taken_back(self, make, same):
        def forward(self, i):
            return torch.rand(2, 1) * F.embedding(i, self.weight)

        module, plain = make(forward), Fn(forward).eval()
        for i in range(5):
            index = torch.tensor([i, 9] if i == 3 else [0, i % 4])
            for each in (module, plain):
                torch.manual_seed(i)
                try:
                    result = each(index)
                except IndexError:
                    result = None
                each.seen = (result, torch.rand(3))
            same(module.seen, plain.seen)

    def test_after_a_write_the_error_is_the_replays_own(self, make, livepool, same):
        """As in eager, what was written before the error stays, once."""

        def forward(self, i):
            self.count.add_(1)
            return F.embedding(i, self.weight) * 2

        module, plain = make(forward), Fn(forward).eval()
        module.count, plain.count = torch.zeros(()), torch.zeros(())
        for index in ([0, 1], [2, 3], [0, 9], [1, 2]):
            errors = []
            for each in (module, plain):
                try:
                    each(torch.tensor(index))
                except Exception as error:
                    errors.append(type(error))
            assert errors == ([IndexError] * 2 if 9 in index else [])
            same(module.count, plain.count)
        assert livepool.explain(module).replayed == 2


def test_least_recently_used_graphs_go(make, livepool, same, caplog):
    caplog.set_level(logging.INFO, "livepool")
    module, plain = make(linear, max_graphs=2), Fn(linear).eval()

    def captured():
        return {int(each.signature[6]) for each in livepool.explain(module).signatures if each.status == "captured"}

    for n in (1, 2, 1, 3):
        same(module(rows(n, n)), plain(rows(n, n)))
    assert captured() == {1, 3}
    for seed in range(3):
        for n in (1, 2, 3):
            same(module(rows(n, seed)), plain(rows(n, seed)))
    assert len(captured()) == 2


def test_more_signatures_than_are_remembered(make, livepool):
    module = make(lambda self, x, i: x * 2, capture_after=2)
    for i in range(1500):
        module(rows(1), i)
    assert len(livepool.explain(module).signatures) <= 1024


class Cache:
    def __init__(self):
        self.rows = torch.zeros(8, 4)


def test_objects_among_the_arguments_are_not_kept(make, livepool, same):
    """One cache for each request: its graph goes with it."""
    import gc
    import weakref

    def forward(self, x, at, cache):
        cache.rows.index_copy_(0, at, x)
        return linear(self, cache.rows), cache

    module, plain = make(forward), Fn(forward).eval()
    for _ in range(3):
        mine, theirs = Cache(), Cache()
        for i in range(4):
            got, back = module(rows(1, i), torch.tensor([i]), mine)
            assert back is mine
            same(got, plain(rows(1, i), torch.tensor([i]), theirs)[0])
            same(mine.rows, theirs.rows)
        assert len(livepool.explain(module).signatures) == 1
        alive = weakref.ref(mine.rows)
        del mine, back
        assert livepool.explain(module).signatures == []
        gc.collect()
        assert alive() is None
    assert livepool.explain(module).replayed == 9


def test_explain(make, livepool):
    module = make(linear)
    for seed in range(3):
        module(rows(3, seed))
    module(rows(5))
    report = livepool.explain(module)
    assert isinstance(report, livepool.Explanation) and report.module == "Fn"
    first = report.signatures[0]
    assert (first.status, first.reason, first.captures) == ("captured", None, 1)
    assert first.graph["ops"] == 5 and first.graph["arena_bytes"] == first.graph["lower_bound_bytes"] > 0
    assert first.graph["hits"] > 0 and first.graph["misses"] == 0
    text = str(report)
    for part in ("Fn: 2 calls replayed", "(Float[3, 4])", "5 ops", "bound 64 B", "arena 64 B", "2 replays"):
        assert part in text
    assert dataclasses.asdict(report)["signatures"][0]["signature"] == "Float[3, 4]"
