"""Several threads call one wrapped module: no wrong byte, no deadlock, and a capture stops nobody's replays."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

SECONDS = 120  # until a test says that it hangs


@pytest.fixture(autouse=True)
def _deadline():
    """Each wait below has this limit; a deadlock is a failure and not a hang."""
    import faulthandler

    faulthandler.dump_traceback_later(2 * SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def in_threads(n, work):
    """work(i) on n threads that begin together; their results."""
    barrier = threading.Barrier(n)

    def run(i):
        barrier.wait(SECONDS)
        with torch.no_grad():  # grad mode is a thread's own
            return work(i)

    with ThreadPoolExecutor(n) as pool:
        return [each.result(SECONDS) for each in [pool.submit(run, i) for i in range(n)]]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4)).eval()


def x(n, seed):
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))


def test_one_signature_and_several(livepool, wrapped, same):
    plain = net()
    module = wrapped(plain)
    want = {(n, seed): plain(x(n, seed)) for n in (1, 2, 3) for seed in range(10)}

    def work(i):
        for seed in range(40):
            n = 1 + (seed + i) % 3 if i % 2 else 2
            same(module(x(n, seed % 10)), want[n, seed % 10])

    in_threads(6, work)
    report = livepool.explain(module)
    assert len(report.signatures) == 3 and all(each.captures == 1 for each in report.signatures)
    assert report.replayed + sum(report.as_is.values()) + 3 == 6 * 40
    assert report.replayed > 100


def test_eviction_under_load(livepool, wrapped, same):
    plain = net()
    module = wrapped(plain, max_graphs=2)
    want = {(n, seed): plain(x(n, seed)) for n in range(1, 6) for seed in range(5)}
    in_threads(4, lambda i: [same(module(x(1 + (k + i) % 5, k % 5)), want[1 + (k + i) % 5, k % 5]) for k in range(60)])
    assert sum(each.graph is not None for each in livepool.explain(module).signatures) <= 2


def test_state_that_changes_under_load(livepool, wrapped):
    """Each call gives what the module gives with one bias or with the other."""
    module = wrapped(net())
    biases = [nn.Parameter(torch.full((4,), value)) for value in (0.0, 1.0)]
    results = []
    for bias in biases:
        module[-1].bias = bias
        with livepool.disabled():
            results.append(module(x(2, 0)))

    def work(i):
        for k in range(60):
            if i == 0:
                module[-1].bias = biases[k % 2]
                time.sleep(0.001)
            else:
                got = module(x(2, 0))
                assert any(torch.equal(got, each) for each in results)

    in_threads(4, work)


def test_disabled_is_for_one_thread(livepool, wrapped):
    module = wrapped(net())
    module(x(2, 0))

    def work(i):
        if i == 0:
            with livepool.disabled():
                for k in range(20):
                    module(x(2, k))
        else:
            for k in range(20):
                module(x(2, k))

    in_threads(2, work)
    assert livepool.explain(module).replayed == 20


def test_a_capture_stops_no_replays(livepool, wrapped):
    """A capture that takes as long as the test likes, in the middle of the pass; other signatures, and calls of the same one,
    go on."""
    inside, go_on = threading.Event(), threading.Event()

    class Slow(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            y = self.linear(x)
            if x.shape[0] == 3 and not go_on.is_set():
                inside.set()
                assert go_on.wait(SECONDS)
            return y * 2

    Slow.__deepcopy__ = lambda self, memo: self  # Events cannot be copied
    module = wrapped(Slow().eval())
    for seed in range(3):
        module(x(2, seed))

    def work(i):
        if i == 0:
            return module(x(3, 0))
        assert inside.wait(SECONDS)
        before = livepool.explain(module).replayed
        for seed in range(20):
            module(x(2, seed))
        go_on.set()
        module(x(3, 1))
        return livepool.explain(module).replayed - before

    assert in_threads(2, work)[1] >= 20


DISTURB = {"captures": 0}  # a global, which captures do not look at


def test_random_numbers_that_others_draw_only_delay_a_capture(livepool, wrapped, same, caplog):
    """The capture cannot know that it was not the pass that moved the generator."""

    class Disturbed(nn.Module):
        def forward(self, x):
            y = x.exp() * 2
            DISTURB["captures"] += 1
            if DISTURB["captures"] == 1:
                other = threading.Thread(target=torch.rand, args=(3,))
                other.start()
                other.join()
            return y + 1

    module = wrapped(Disturbed().eval())
    for seed in range(5):
        same(module(x(2, seed)), x(2, seed).exp() * 2 + 1)
    assert livepool.explain(module).replayed == 2  # seen once, once more, captured
    assert len(caplog.records) == 1 and "another thread draws" in caplog.records[0].getMessage()


def test_replays_that_need_the_interpreter(livepool, wrapped, same):
    """An operator written in Python takes the interpreter lock inside a replay, which has released it."""

    @torch.library.custom_op("livepool_wrap_threads::twice", mutates_args=())
    def twice(t: torch.Tensor) -> torch.Tensor:
        time.sleep(0.0005)
        return t * 2

    class Custom(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return torch.ops.livepool_wrap_threads.twice(self.linear(x)) + 1

    plain = Custom().eval()
    module = wrapped(plain, max_graphs=1)
    want = {(n, seed): plain(x(n, seed)) for n in (1, 2) for seed in range(5)}
    in_threads(4, lambda i: [same(module(x(1 + (k + i) % 2, k % 5)), want[1 + (k + i) % 2, k % 5]) for k in range(30)])
