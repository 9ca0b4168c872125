"""Real torch programs inside livepool.pass_scope: the same results, bit for bit, and most of it served.

Slots are poisoned at their death (see conftest.py), so a byte that was handed out too early shows as NaN.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn

names = (f"test {number}" for number in itertools.count())


@pytest.fixture
def scope(livepool):
    """A scope of its own: scope.run(step, *args) is one pass, scope.learn(...) so many that plans are made."""

    class Scope:
        name = next(names)

        def run(self, step, *args):
            with livepool.pass_scope(self.name):
                return step(*args)

        def learn(self, step, *args, passes=6):
            for _ in range(passes):
                self.run(step, *args)
                livepool.wait_for_plans()

        def stats(self):
            return livepool.scope_stats(self.name)

        def counts(self, step, *args):
            """The hits and misses of one pass."""
            before = self.stats()
            self.run(step, *args)
            after = self.stats()
            return after["hits"] - before["hits"], after["misses"] - before["misses"]

    return Scope()


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + x)


def resnet():
    torch.manual_seed(0)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return nn.Sequential(nn.Conv2d(3, 16, 3), *(Residual(16) for _ in range(4)), head).eval()


def transformer():
    torch.manual_seed(0)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 3).eval()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0].sum(1)


def images(seed, size=20):
    return torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(seed))


def sequences(seed, length=7, width=8):
    return torch.randn(3, length, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("make", "inputs"), [(resnet, images), (transformer, lambda seed: sequences(seed, width=32)),
                                              (Recurrent, sequences)], ids=["resnet", "transformer", "lstm"])
def test_models(scope, same, make, inputs):
    model = make()
    scope.learn(model, inputs(0))
    for seed in range(1, 5):
        want = model(inputs(seed))
        same(scope.run(model, inputs(seed)), want)
    hits, misses = scope.counts(model, inputs(0))
    assert hits > 0
    assert misses == 0
    stats = scope.stats()
    assert stats["units"] >= 1
    assert stats["arena_bytes"] == stats["lower_bound_bytes"]


def test_two_shapes_alternate(livepool, scope, same):
    model = resnet()
    sizes = (20, 28)
    for _ in range(5):
        for size in sizes:
            scope.learn(model, images(0, size), passes=1)
    for seed, size in itertools.product(range(1, 4), sizes):
        want = model(images(seed, size))
        same(scope.run(model, images(seed, size)), want)
    for size in sizes:
        assert scope.counts(model, images(0, size))[1] == 0
    assert scope.stats()["units"] >= 2


def test_branches(scope, same):
    model, other = resnet(), nn.Conv2d(3, 3, 3, padding=1).eval()

    def step(x, branch):
        return model(torch.tanh(other(x)) if branch else x)

    for branch in (False, True, False, True, True, False, False, True):
        scope.learn(step, images(0), branch, passes=1)
    for seed, branch in enumerate((True, False, False, True)):
        want = step(images(seed), branch)
        same(scope.run(step, images(seed), branch), want)
    assert scope.counts(step, images(0), True)[1] == 0


def test_outputs_that_are_kept(scope, same):
    model = resnet()
    outputs, inner = [], {}

    def step(seed):
        hidden = model[:3](images(seed))
        if seed % 3 == 2:  # now and then an inner tensor, too
            inner[seed] = hidden
        return model[3:](hidden)

    for seed in range(12):
        scope.learn(lambda seed=seed: outputs.append(step(seed)), passes=1)
    same(outputs, [model(images(seed)) for seed in range(12)])
    same(inner, {seed: model[:3](images(seed)) for seed in inner})
    assert scope.stats()["hits"] > 0


def test_exceptions(scope, same):
    model = resnet()

    def step(x, fail):
        hidden = model[:3](x)
        if fail:
            raise ValueError("the program's own")
        return model[3:](hidden)

    scope.learn(step, images(0), False)
    for seed in range(4):
        with pytest.raises(ValueError, match="the program's own"):
            scope.run(step, images(seed), True)
        want = model(images(seed))
        same(scope.run(step, images(seed), False), want)
    assert scope.counts(step, images(0), False)[1] == 0


def test_nested_scopes_and_recursion(livepool, scope, same):
    model, outer = resnet(), next(names)

    def step(x):
        hidden = torch.tanh(x * 2 + 1)
        return scope.run(model, hidden) - 1

    def recursive(x, depth):
        with livepool.pass_scope(outer):
            return step(x) if depth == 0 else recursive(x, depth - 1) * 2

    for seed in range(8):
        want = (model(torch.tanh(images(seed) * 2 + 1)) - 1) * 4
        same(recursive(images(seed), 2), want)
        livepool.wait_for_plans()
    assert scope.counts(model, images(0))[1] == 0 or scope.stats()["hits"] > 0
    assert livepool.scope_stats(outer)["passes"] == 8, "the outermost run is the pass"
    assert livepool.scope_stats(outer)["hits"] > 0
    assert scope.stats()["passes"] == 9


def test_two_threads(livepool, same):
    model, name = resnet(), next(names)
    wants = [model(images(seed)) for seed in range(4)]
    failures = []

    def work():
        try:
            with torch.no_grad():
                for turn in range(24):
                    with livepool.pass_scope(name):
                        got = model(images(turn % 4))
                    same(got, wants[turn % 4])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert livepool.scope_stats(name)["passes"] == 48
    assert livepool.scope_stats(name)["hits"] > 0


def test_another_thread_is_not_served_and_may_free(scope, same):
    model = resnet()

    def step(x):
        hidden = [model[:3](x)]
        results = []
        thread = threading.Thread(target=lambda: results.append(torch.tanh(hidden.pop())))
        thread.start()
        thread.join()
        return model[3:](results.pop())

    scope.learn(step, images(0))
    for seed in range(1, 4):
        with torch.no_grad():
            want = model[3:](torch.tanh(model[:3](images(seed))))
        same(scope.run(step, images(seed)), want)


def test_tensors_that_the_collector_frees(scope, same):
    model = resnet()

    def step(x):
        hidden = model[:3](x)
        cycle = [hidden]
        cycle.append(cycle)
        return model[3:](hidden)

    gc.disable()
    try:
        for turn in range(14):
            want = model(images(turn))
            same(scope.run(step, images(turn)), want)
            if turn % 3 == 1:
                gc.collect()
    finally:
        gc.enable()
        gc.collect()
    assert scope.stats()["hits"] > 0


def train(steps, run):
    torch.manual_seed(0)
    model = resnet().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    with torch.enable_grad():
        losses = [run(step, images(seed)) for seed in range(steps)]
    return losses, [parameter.detach().clone() for parameter in model.parameters()]


def test_a_training_step(livepool, scope, same):
    def run(step, x):
        result = scope.run(step, x)
        livepool.wait_for_plans()
        return result

    same(train(8, run), train(8, lambda step, x: step(x)))
    stats = scope.stats()
    assert stats["hits"] > stats["misses"]


def test_capture_and_replay_inside_a_scope(livepool, scope, same):
    model = resnet()
    scope.learn(model, images(0))

    def step(x):
        y = torch.tanh(x)
        graph = livepool.capture(model, y)
        return graph.replay(y) + graph.replay(y * 2)

    for seed in range(3):
        y = torch.tanh(images(seed))
        same(scope.run(step, images(seed)), model(y) + model(y * 2))


def test_a_scope_inside_a_capture_does_nothing(livepool, scope, same):
    model = resnet()
    graph = livepool.capture(lambda x: scope.run(model, x), images(0))
    assert scope.stats()["passes"] == 0
    same(graph.replay(images(1)), model(images(1)))
    assert scope.stats()["passes"] == 1, "livepool's own check has run the model"
    same(graph.replay(images(2)), model(images(2)))
    assert scope.stats()["passes"] == 1


def test_scopes_that_end_out_of_order(livepool, same):
    first, second = next(names), next(names)
    model = resnet()

    def generator():
        with livepool.pass_scope(first):
            yield model(images(0))

    for _ in range(4):
        running = generator()
        got = next(running)
        with livepool.pass_scope(second):
            running.close()
            same(model(images(1)), model(images(1)))
        same(got, model(images(0)))
    assert livepool.scope_stats(first)["passes"] == livepool.scope_stats(second)["passes"] == 4


def test_leaving_on_another_thread_is_an_error(livepool):
    scope = livepool.pass_scope(next(names))
    errors = []

    def leave():
        try:
            scope.__exit__(None, None, None)
        except livepool.Error as error:
            errors.append(str(error))

    with scope:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert "leave it on the thread that entered it" in errors[0]


def test_the_same_object_twice(livepool, scope, same):
    model = resnet()
    twice = livepool.pass_scope(scope.name)
    for _ in range(4):
        with twice, twice:
            got = model(images(0))
        same(got, model(images(0)))
    assert scope.stats()["passes"] == 4


def python(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment,
                          check=False)


def test_must_be_installed(livepool):
    done = python("import livepool\ntry:\n  livepool.pass_scope('x').__enter__()\nexcept livepool.NotInstalled as e:\n  print(e)")
    assert "livepool is not installed for cpu" in done.stdout, done.stderr


def test_a_process_may_exit_while_plans_are_made(livepool):
    done = python("""
import torch, livepool
livepool.install("cpu")
x = torch.ones(100)
for i in range(40):
    with livepool.pass_scope(str(i)):
        kept = [x * n for n in range(300)]
print("done")
""")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_forked_child_runs_on_without_scopes(livepool):
    done = python("""
import os, sys, torch, livepool
livepool.install("cpu")
def step():
    with livepool.pass_scope("x"):
        return sum(torch.ones(100) * n for n in range(30))
for _ in range(4):
    step()
with livepool.pass_scope("x"):
    child = os.fork()
    kept = torch.ones(100) * 2
if child == 0:
    assert torch.equal(step(), torch.full((100,), 435.0))
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), livepool.scope_stats("x")["passes"])
""")
    assert done.stdout == "7 5\n", done.stderr


def test_switched_off(livepool):
    done = python("""
import os; os.environ["LIVEPOOL"] = "0"
import torch, livepool
livepool.install("cpu")
for _ in range(3):
    with livepool.pass_scope("x"):
        torch.ones(10) + 1
print(livepool.scope_stats("x")["passes"])
""")
    assert done.stdout == "0\n", done.stderr
