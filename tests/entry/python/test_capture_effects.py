"""Effects happen once, exceptions pass through, and livepool is usable after each failure."""

import subprocess
import sys
import threading
import time

import pytest
import torch
from torch import nn

X = torch.arange(6.0)


def test_the_callable_runs_once_at_capture(livepool):
    calls = []

    def fn(x):
        calls.append("call")
        return x * 2

    graph = livepool.capture(fn, X)
    assert calls == ["call"]
    graph.replay(X)  # the capture's bytes: not checked
    assert calls == ["call"]
    graph.replay(X + 1)  # checked against the callable
    assert calls == ["call"] * 2
    graph.replay(X + 2)
    assert calls == ["call"] * 2


def test_argument_is_written_once_per_run(livepool, same):
    def fn(x, y):
        x.add_(1)
        y[0].mul_(2)
        return x + y.sum()

    x, y = X.clone(), torch.ones(2, 3)
    graph = livepool.capture(fn, x, y)
    same((x, y), (X + 1, torch.tensor([[2.0] * 3, [1.0] * 3])))
    for step in range(1, 4):
        x, y = X + step, torch.full((2, 3), float(step))
        eager = x.clone(), y.clone()
        same(graph.replay(x, y), fn(*eager))
        same((x, y), eager)


def test_refused_capture_has_run_the_callable_once(livepool, same):
    x = X.clone()
    with pytest.raises(livepool.CaptureRefused):
        livepool.capture(lambda x: x.add_(1) * x.tolist()[0], x)
    same(x, X + 1)


def test_argument_container_that_is_changed_is_refused(livepool):
    mine = [X]
    with pytest.raises(livepool.CaptureRefused, match="container"):
        livepool.capture(lambda items: (items.append(items[0] * 2), items[0] + 1)[1], mine)
    assert len(mine) == 2  # the callable got the caller's own list


def test_result_that_python_makes_of_its_own_state(livepool):
    """A result that is no tensor and changes from call to call: the check of the first replay sees it."""
    import itertools

    numbers = itertools.count()
    graph = livepool.capture(lambda x: (x * 2, next(numbers)), X)
    with pytest.raises(livepool.CheckFailed):
        graph.replay(X + 1)


def test_class_attribute_read_in_forward_is_seen_by_the_check(livepool):
    class Model(nn.Module):
        factor = 2.0

        def forward(self, x):
            return x * self.factor

    graph = livepool.capture(Model().eval(), X)
    Model.factor = 3.0
    with pytest.raises(livepool.CheckFailed, match="differs from eager's by up to"):
        graph.replay(X + 1)
    with pytest.raises(livepool.CheckFailed):  # the graph is dropped
        graph.replay(X)


def test_failed_check_leaves_state_as_it_was(livepool, same):
    class Settings:
        factor = 1.0

    state = torch.zeros(6)

    def fn(x):
        state.add_(x)
        return state * Settings.factor + torch.rand(6)

    graph = livepool.capture(fn, X)
    Settings.factor = 2.0
    before, draws = state.clone(), torch.get_rng_state()
    with pytest.raises(livepool.CheckFailed):
        graph.replay(X + 1)
    same(state, before)
    assert torch.get_rng_state().equal(draws)


class TestExceptions:
    def test_of_python(self, livepool, same):
        def fn(x):
            raise KeyError(f"mine, {(x * 2).shape}")

        with pytest.raises(KeyError, match="mine"):
            livepool.capture(fn, X)
        self._works(livepool, same)

    def test_of_an_operator(self, livepool, same):
        with pytest.raises(RuntimeError, match="size"):
            livepool.capture(lambda x: x * 2 + torch.ones(5), X)
        self._works(livepool, same)

    def test_index_error_keeps_its_type(self, livepool, same):
        with pytest.raises(IndexError):
            livepool.capture(lambda x: (x * 2)[torch.tensor([9])], X)
        graph = livepool.capture(lambda x, i: (x * 2)[i] + 1, X, torch.tensor([1]))
        with pytest.raises(IndexError):
            graph.replay(X, torch.tensor([9]))
        for i in (2, 3):
            same(graph.replay(X, torch.tensor([i])), X[i : i + 1] * 2 + 1)

    def test_data_dependent_error_at_replay(self, livepool, same):
        graph = livepool.capture(lambda x: torch.linalg.cholesky(x) * 2 + 1, torch.eye(3))
        for bad in (-torch.eye(3), torch.zeros(3, 3)):
            with pytest.raises(torch.linalg.LinAlgError):
                graph.replay(bad)
        for good in (torch.eye(3) * 4, torch.eye(3) * 9):
            same(graph.replay(good), torch.linalg.cholesky(good) * 2 + 1)

    def test_assert_async(self, livepool, same):
        graph = livepool.capture(lambda x: (torch._assert_async((x >= 0).all()), x * 2)[1], X)
        with pytest.raises(RuntimeError):
            graph.replay(X - 100)
        same(graph.replay(X), X * 2)

    def test_caught_inside(self, refused):
        def fn(x):
            try:
                return x * 2 + torch.ones(5)
            except RuntimeError:
                return x + 1

        refused(fn, X, match="aten::add.*exception")

    def test_keyboard_interrupt(self, livepool, same):
        def fn(x):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            livepool.capture(fn, X)
        self._works(livepool, same)

    def test_out_of_memory(self, livepool, same):
        with pytest.raises(RuntimeError):
            livepool.capture(lambda x: x * 2 + torch.ones(1 << 60), X)
        self._works(livepool, same)

    @staticmethod
    def _works(livepool, same):
        graph = livepool.capture(lambda x: (x + 1) * 2, X)
        for x in (X + 3, X + 4):
            same(graph.replay(x), (x + 1) * 2)
        assert graph.report()["misses"] == 0


class TestNesting:
    def test_capture_inside_a_capture(self, refused, livepool):
        def fn(x):
            livepool.capture(lambda y: y * 2, x)
            return x + 1

        with pytest.raises(livepool.CaptureRefused, match="another capture is under way"):
            livepool.capture(fn, X)

    def test_caught_inner_capture_leaves_the_outer_right(self, livepool, same):
        def fn(x):
            try:
                livepool.capture(lambda y: y * 2, x)
            except livepool.CaptureRefused:
                pass
            return x * 3 + 1

        graph = livepool.capture(fn, X)
        for x in (X + 1, X + 2):
            same(graph.replay(x), x * 3 + 1)

    def test_replay_inside_a_capture(self, livepool, same):
        """Its ops are calls of the dispatcher like others."""
        inner = livepool.capture(lambda x: (x + 1).exp() * 2, X)
        try:
            outer = livepool.capture(lambda x: inner.replay(x * 0.5) + 1, X)
        except livepool.CaptureRefused:
            return
        for x in (X + 1, X + 2, X + 3):
            same(outer.replay(x), (x * 0.5 + 1).exp() * 2 + 1)


class TestRefusedKinds:
    def test_vmap_around(self, refused):
        refused(lambda x: torch.vmap(lambda r: r * 2 + 1)(x.view(2, 3)), X, match="functorch|vmap")

    def test_func_grad_inside(self, refused):
        refused(lambda x: torch.func.grad(lambda y: (y * y).sum())(x), X, match="functorch|grad")

    def test_jvp_inside(self, refused):
        refused(lambda x: torch.func.jvp(torch.sin, (x,), (x,))[1], X, match=".")

    def test_capture_under_vmap(self, livepool):
        def inside(x):
            with pytest.raises(livepool.CaptureRefused):
                livepool.capture(lambda y: y * 2, x)
            return x

        torch.vmap(inside)(X.view(2, 3))

    def test_dispatch_mode_around(self, refused, livepool):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        with Mode(), pytest.raises(livepool.CaptureRefused, match="DispatchMode"):
            livepool.capture(lambda x: x * 2, X)

        def fn(x):
            with Mode():
                return x * 2 + 1

        refused(fn, X, match="DispatchMode")

    def test_subclass_without_dispatch(self, refused):
        class Tagged(torch.Tensor):
            pass

        refused(lambda x: x * 2, X.as_subclass(Tagged), match=r"args\[0\] is a Tagged, a tensor subclass")
        refused(lambda x: (x * 2).as_subclass(Tagged), X, match="Tagged")
        state = X.as_subclass(Tagged)
        refused(lambda x: x * state, X, match="Tagged")

    def test_subclass_with_dispatch(self, refused):
        class Wrapped(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

            def __init__(self, inner):
                self.inner = inner

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return func(*[a.inner if isinstance(a, Wrapped) else a for a in args], **(kwargs or {}))

        refused(lambda x: x * 2, Wrapped(X), match="Wrapped")
        refused(lambda x: Wrapped(x) * 2, X, match="subclass|storage")

    KINDS = {
        "sparse coo": lambda x: x.view(2, 3).to_sparse().to_dense() * 2,
        "sparse csr": lambda x: x.view(2, 3).to_sparse_csr() @ torch.ones(3, 2),
        "nested": lambda x: torch.nested.to_padded_tensor(torch.nested.as_nested_tensor([x[:2], x[:3]]), 0.0) * 2,
        "quantised": lambda x: torch.dequantize(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)) * 2,
        "mkldnn": lambda x: x.view(2, 3).to_mkldnn().to_dense() * 2,
        "meta": lambda x: x * 2 + torch.empty(6, device="meta").numel() * torch.zeros(6, device="meta").add(1).numel(),
    }

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("fn", KINDS.values(), ids=KINDS)
    def test_inside_is_refused_or_right(self, livepool, same, fn):
        try:
            graph = livepool.capture(fn, X)
        except livepool.CaptureRefused as refusal:
            assert str(refusal)
            graph = livepool.capture(lambda x: x + 1, X)
            same(graph.replay(X + 1), X + 2)
        else:
            for x in (X + 1, X * 2, X - 1):
                same(graph.replay(x), fn(x))

    ARGUMENTS = {
        "sparse": lambda: X.view(2, 3).to_sparse(),
        "quantised": lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        "meta": lambda: X.to("meta"),
        "mkldnn": lambda: X.view(2, 3).to_mkldnn(),
    }

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("make", ARGUMENTS.values(), ids=ARGUMENTS)
    def test_argument_is_refused(self, refused, make):
        refused(lambda x, y: y * 2, make(), X, match=".")


def _run(code: str, **env: str) -> subprocess.CompletedProcess:
    import os

    import livepool

    path = os.path.dirname(os.path.dirname(os.path.abspath(livepool._livepool.__file__)))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **env})


def test_capture_before_install_is_refused(livepool):
    run = _run("""
import torch, livepool
with torch.no_grad():
    try:
        livepool.capture(lambda x: x * 2, torch.ones(2))
    except livepool.NotInstalled as error:
        print("refused", "install" in str(error))
""")
    assert run.stdout == "refused True\n", run.stderr


def test_exit_with_tensors_alive_everywhere(livepool):
    """Field fault 13: tensors in globals, class attributes and other threads at exit."""
    run = _run("""
import threading, torch, livepool
livepool.install("cpu")
torch.set_grad_enabled(False)
class Holder: pass
def fn(x): return (x @ x).relu() @ x, x * 2
graph = livepool.capture(fn, torch.ones(8, 8))
kept = [graph.replay(torch.full((8, 8), float(i))) for i in range(3)]
Holder.kept = graph.replay(torch.zeros(8, 8))
Holder.graph = graph
def hold():
    torch.set_grad_enabled(False)
    mine = graph.replay(torch.ones(8, 8))
    started.set()
    threading.Event().wait()
started = threading.Event()
threading.Thread(target=hold, daemon=True).start()
started.wait()
""")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_check_policies(livepool):
    code = """
import torch, livepool
livepool.install("cpu")
torch.set_grad_enabled(False)
calls = []
def fn(x):
    calls.append(1)
    return x * 2 + 1
graph = livepool.capture(fn, torch.ones(4))
for i in range(6):
    graph.replay(torch.full((4,), float(i)))
print(len(calls) - 1, graph.report()["checked"])
"""
    assert [_run(code, LIVEPOOL_CHECK=policy).stdout for policy in ("off", "every:2")] == ["0 False\n", "3 True\n"]


def test_serving_off(livepool):
    run = _run("""
import torch, livepool
livepool.install("cpu")
torch.set_grad_enabled(False)
graph = livepool.capture(lambda x: (x * 2 + 1).exp(), torch.ones(4))
print(graph.replay(torch.zeros(4)).equal(torch.ones(4).exp()), graph.report()["hits"], livepool.stats()["arena_bytes"])
""", LIVEPOOL="0")
    assert run.stdout == "True 0 0\n", run.stderr


READING, DONE = threading.Event(), threading.Event()


class TestThreads:
    @staticmethod
    def _fn(x):
        y = x
        for _ in range(4):
            y = torch.tanh(y @ x) + y * 0.5
        return y, y.sum()

    def _together(self, *work):
        errors = []

        def guarded(each):
            try:
                with torch.no_grad():
                    each()
            except BaseException as error:  # noqa: BLE001  (it is raised again in the test's thread)
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(each,)) for each in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def test_one_graph_on_two_threads(self, livepool, same):
        graph = livepool.capture(self._fn, torch.randn(24, 24))

        def work(seed):
            def run():
                x = torch.randn(24, 24, generator=torch.Generator().manual_seed(seed))
                want = self._fn(x)
                for _ in range(30):
                    same(graph.replay(x), want)

            return run

        self._together(work(1), work(2))
        assert graph.report()["misses"] == 0

    def test_another_thread_is_served_by_upstream(self, livepool, same):
        """Field fault 7: what a second thread allocates meanwhile is neither planned nor served from slots."""
        graph = livepool.capture(self._fn, torch.randn(24, 24))
        alone = graph.report()["buffers"]
        stop = threading.Event()
        ready = threading.Event()

        def noise():
            kept = []
            while not stop.is_set():
                kept.append(torch.full((24, 24), 7.0))
                ready.set()
                time.sleep(0.0002)
                if len(kept) > 50:
                    assert all((each == 7.0).all() for each in kept)
                    kept.clear()

        def replays():
            try:
                ready.wait(10)
                again = livepool.capture(self._fn, torch.randn(24, 24))
                assert again.report()["buffers"] == alone
                for seed in range(30):
                    x = torch.randn(24, 24)
                    same(again.replay(x), self._fn(x))
                assert again.report()["misses"] == 0
                assert again.report()["arena_bytes"] == graph.report()["arena_bytes"]
            finally:
                stop.set()

        self._together(noise, replays)

    def test_outputs_die_on_another_thread(self, livepool, same):
        graph = livepool.capture(self._fn, torch.randn(24, 24))
        for _ in range(10):
            box = [graph.replay(torch.randn(24, 24))]
            self._together(lambda: box.clear())
        x = torch.randn(24, 24)
        same(graph.replay(x), self._fn(x))
        assert graph.report()["misses"] == 0

    def test_captures_on_two_threads(self, livepool, same):
        def work(seed):
            def run():
                for step in range(5):
                    x = torch.randn(16, 16, generator=torch.Generator().manual_seed(seed + step))
                    graph = livepool.capture(self._fn, x)
                    same(graph.replay(x + 1), self._fn(x + 1))
                    same(graph.replay(x + 2), self._fn(x + 2))

            return run

        self._together(work(10), work(20))

    def test_host_reads_of_another_thread_do_not_refuse(self, livepool, same):
        def fn(x):
            READING.set()
            DONE.wait(10)
            return x * 2 + 1

        def reader():
            READING.wait(10)
            assert X.tolist() == list(range(6))
            DONE.set()

        self._together(reader, lambda: same(livepool.capture(fn, X).replay(X + 1), (X + 1) * 2 + 1))

    def test_tensor_of_another_thread_is_refused(self, refused):
        def fn(x):
            box = []
            thread = threading.Thread(target=lambda: box.append(torch.ones(6) * 2))
            thread.start()
            thread.join()
            return x + box[0]

        refused(fn, X, match="hidden input")


def test_graphs_share_one_arena(livepool):
    """The memory is the largest plan, not the sum of the plans."""
    run = _run("""
import torch, livepool
livepool.install("cpu")
torch.set_grad_enabled(False)
fn = lambda x: ((x + 1).exp() @ x).relu() @ x
graphs = [livepool.capture(fn, torch.ones(n, n)) for n in (64, 128, 192, 256)]
for _ in range(2):
    for graph, n in zip(graphs, (64, 128, 192, 256)):
        graph.replay(torch.full((n, n), 0.5)); graph.replay(torch.full((n, n), 0.25))
plans = [graph.report()["arena_bytes"] for graph in graphs]
mapped = livepool.stats()["arena_bytes"]
print(max(plans) <= mapped < max(plans) + (2 << 20) + 4096, mapped < sum(plans) + (2 << 20), sum(g.report()["misses"] for g in graphs))
""")
    assert run.stdout == "True True 0\n", run.stdout + run.stderr
