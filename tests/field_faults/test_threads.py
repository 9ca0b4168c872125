"""Threads: several replay at once, and what a pass has served is freed when its thread is long gone."""

import pytest


def test_several_threads_replay_at_once(program):
    program(
        """
        def other(x): return (x + 1).relu().sum(0) * x
        graphs = [livepool.capture(network, ones(24)), livepool.capture(other, ones(24))]
        wrong, start = [], threading.Barrier(6)
        def work(thread):
            torch.set_grad_enabled(False)
            graph, fn = graphs[thread % 2], (network, other)[thread % 2]
            x = torch.randn(24, 24, generator=torch.Generator().manual_seed(thread))
            want = fn(x)
            start.wait()
            for i in range(60):
                if not torch.equal(graph.replay(x), want):
                    wrong.append(f"thread {thread}, replay {i}")
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not wrong, wrong
        """
    )


def test_freed_by_others_after_the_thread_has_ended(program):
    """An operator keeps a tensor of the pass: its slot stays its own, and any thread may free it."""
    program(
        """
        kept = []
        library = torch.library.Library("field_faults", "FRAGMENT")
        library.define("keep(Tensor x) -> Tensor")
        def keep(x):
            y = x * 3
            kept.append(y)                     # lives on, in a slot that was planned to die
            return y + 1
        library.impl("keep", keep, "CompositeExplicitAutograd")
        def fn(x): return torch.ops.field_faults.keep(x + 1) * 2
        graph = livepool.capture(fn, ones(16))
        kept.clear()
        def replay():
            torch.set_grad_enabled(False)
            for i in range(4):
                assert torch.equal(graph.replay(ones(16, i)), (ones(16, i) + 1) * 6 + 2), i
        thread = threading.Thread(target=replay); thread.start(); thread.join()
        values = {float(each[0, 0]) for each in kept}
        assert all((each == each[0, 0]).all() for each in kept), "a slot was overwritten while its tensor lived"
        assert values == {3.0, 6.0, 9.0, 12.0}, values
        for each in range(2):                  # freed here, and by another thread
            thread = threading.Thread(target=kept.pop); thread.start(); thread.join()
        kept.clear()
        graph.replay(ones(16, 7)); kept.clear()
        livepool.trim()
        assert livepool.stats()["arena_bytes"] == 0, "expected: no slot is live, so that a trim gives all back"
        """,
        LIVEPOOL_CHECK="off",
    )


@pytest.mark.parametrize("count", [1, 2])
def test_fork(program, count):
    """DataLoader workers: a forked child works, on upstream's memory alone, and the parent goes on being served."""
    program(
        f"""
        from torch.utils.data import DataLoader
        graph = livepool.capture(network, ones(8))
        graph.replay(ones(8, 2))
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 6
            def __getitem__(self, i):
                torch.set_grad_enabled(False)
                before = livepool.stats()["hits"]
                right = torch.equal(graph.replay(ones(8, i)), network(ones(8, i)))
                livepool.trim()
                return torch.tensor([right, livepool.stats()["hits"] == before]), torch.full((300, 300), float(i))
        for epoch in range(2):
            for i, (flags, block) in enumerate(DataLoader(Data(), num_workers={count}, batch_size=None)):
                assert flags[0], f"epoch {{epoch}}, item {{i}}: the child's replay is wrong"
                assert flags[1], f"epoch {{epoch}}, item {{i}}: the child was served from an arena"
                assert (block == i).all()
            before = livepool.stats()["hits"]
            assert torch.equal(graph.replay(ones(8, 3)), network(ones(8, 3)))
            assert livepool.stats()["hits"] > before, "expected: the parent is served as before"
        """
    )


def test_fork_inside_a_pass(program):
    """The child of an operator that forks: upstream only, too; and it can free the slots that it has inherited."""
    assert program(
        """
        import os
        library = torch.library.Library("field_faults", "FRAGMENT")
        library.define("fork(Tensor x) -> Tensor")
        forks, codes = [], []
        def fork(x):
            y = x * 3
            if forks:
                child = os.fork()
                if child == 0:
                    before = livepool.stats()["hits"]
                    z = y + 1                      # a slot is read, upstream's memory is written
                    good = bool((z == y + 1).all()) and livepool.stats()["hits"] == before
                    del x, y, z
                    good = good and torch.equal(network(ones(8)), network(ones(8)))
                    os._exit(0 if good else 1)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return y + 1
        library.impl("fork", fork, "CompositeExplicitAutograd")
        def fn(x): return torch.ops.field_faults.fork(x + 1) * 2
        graph = livepool.capture(fn, ones(16))
        forks.append(True)
        for i in range(3):
            assert torch.equal(graph.replay(ones(16, i)), (ones(16, i) + 1) * 6 + 2), i
        print(codes)
        """,
        LIVEPOOL_CHECK="off",
    ) == "[0, 0, 0]\n"


def test_fork_while_other_threads_replay(program):
    """Locks that other threads held at the fork are never waited for in the child."""
    program(
        """
        import os
        graph = livepool.capture(network, ones(8))
        done = threading.Event()
        def replays():
            torch.set_grad_enabled(False)
            while not done.is_set():
                livepool.capture(network, ones(8)).replay(ones(8, 2))
                try:
                    livepool.trim()
                except livepool.ArenaInUse:         # the other thread's pass
                    pass
        threads = [threading.Thread(target=replays) for _ in range(2)]
        for thread in threads: thread.start()
        try:
            for i in range(20):
                child = os.fork()
                if child == 0:
                    import signal
                    signal.alarm(20)                # a deadlock ends the child
                    good = torch.equal(graph.replay(ones(8, i)), network(ones(8, i)))
                    good = good and livepool.trim() == 0
                    os._exit(0 if good else 1)
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                assert code == 0, f"fork {i}: exit code {code}, expected 0 (-14: it hung)"
        finally:
            done.set()
            for thread in threads: thread.join()
        """
    )
