"""livepool as torch's CUDA allocator: all that native does still works, with no plan in sight.

Each test runs in its own process, as allocators are installed for the life of one.
"""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("livepool._livepool", reason="the Python module is not built", exc_type=ImportError)

pytestmark = pytest.mark.gpu

INSTALL = """
import livepool, torch
livepool.install("cuda")
def mib(n): return n << 20
def block(n, **kwargs): return torch.empty(mib(n), dtype=torch.uint8, device="cuda", **kwargs)
"""


def run(program, prelude=INSTALL):
    import livepool

    folder = os.path.dirname(os.path.dirname(livepool.__file__))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
    result = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(program)],
        env=env, capture_output=True, text=True, timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_install_before_and_after_cuda_starts():
    run("x = block(1); assert torch.cuda.memory_allocated() == mib(1)")
    run(
        """
        assert torch.cuda.memory_allocated() == mib(1)
        y = block(2); del x; torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == mib(2)
        """,
        prelude="import torch; x = torch.empty(1 << 20, dtype=torch.uint8, device='cuda')\n" + INSTALL,
    )


def test_change_current_allocator():
    run(
        """
        torch.cuda.memory.change_current_allocator(livepool.Allocator())
        x = torch.ones(mib(1), device="cuda")
        assert torch.cuda.memory_allocated() == mib(4) and x.sum().item() == mib(1)
        assert torch.cuda.get_allocator_backend() == "livepool over native"
        assert torch.accelerator.memory_allocated() == mib(4)
        """,
        prelude="import livepool, torch\ndef mib(n): return n << 20\n",
    )


def test_statistics_and_their_resets():
    run(
        """
        a = block(8); b = block(4); del b
        stats = torch.cuda.memory_stats()
        assert stats["allocated_bytes.all.current"] == mib(8)
        assert stats["allocated_bytes.all.peak"] == mib(12)
        assert stats["reserved_bytes.all.current"] >= mib(12)
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == mib(8)
        torch.cuda.reset_accumulated_memory_stats()
        assert torch.cuda.memory_stats()["allocated_bytes.all.allocated"] == 0
        del a
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 0
        assert "Allocated memory" in torch.cuda.memory_summary()
        assert torch.accelerator.memory_reserved() == torch.cuda.memory_reserved()
        """
    )


def test_snapshot_and_history():
    run(
        """
        torch.cuda.memory._record_memory_history()
        a = block(4)
        snapshot = torch.cuda.memory._snapshot()
        assert sum(segment["allocated_size"] for segment in snapshot["segments"]) == mib(4)
        for segment in snapshot["segments"]:
            assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        assert any(entry["action"] == "alloc" for entry in snapshot["device_traces"][0])
        from torch.cuda import _memory_viz
        assert "total_reserved" in _memory_viz.segsum(snapshot)
        """
    )


def test_out_of_memory_is_torchs_error_and_the_process_goes_on():
    run(
        """
        try:
            block(1 << 30)
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("1 PiB was allocated")
        assert block(1).numel() == mib(1)
        """
    )


def test_memory_fraction():
    run(
        """
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(mib(256) / total)
        assert abs(torch.cuda.get_per_process_memory_fraction() - mib(256) / total) < 1e-9
        x = block(128)
        try:
            block(256)
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("the limit was not kept")
        """
    )


def test_empty_tensors():
    run(
        """
        kept = [torch.empty(0, device="cuda") for _ in range(3)]
        assert all(t.data_ptr() == 0 and t.device.index == 0 for t in kept)
        assert torch.cuda.memory_allocated() == 0
        """
    )


def test_mem_pool():
    run(
        """
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            inside = block(4)
        outside = block(4)
        ids = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot(pool.id)}
        assert ids == {tuple(pool.id)}
        del inside, pool
        torch.cuda.empty_cache()
        """
    )


def test_cuda_graph():
    run(
        """
        x = torch.arange(1024., device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            (x * 2 + 1).sum()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = (x * 2 + 1).relu()
        x.fill_(3)
        graph.replay()
        assert torch.equal(y, torch.full_like(y, 7))
        del graph, y
        torch.cuda.empty_cache()
        """
    )


def test_compile_with_cuda_graph_trees():
    run(
        """
        @torch.compile(mode="reduce-overhead")
        def f(x): return (x @ x).relu() + 1
        x = torch.randn(64, 64, device="cuda")
        for _ in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            assert torch.allclose(f(x), (x @ x).relu() + 1, atol=1e-3)
        """
    )


def test_record_stream():
    run(
        """
        side = torch.cuda.Stream()
        for i in range(50):
            x = torch.full((mib(4),), i, dtype=torch.int32, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(1_000_000)
                y = x.clone()
            x.record_stream(side)
            del x
            torch.full((mib(4),), -1, dtype=torch.int32, device="cuda")
            torch.cuda.synchronize()
            assert (y == i).all()
        """
    )


def test_cudnn_benchmark():
    run(
        """
        torch.backends.cudnn.benchmark = True
        conv = torch.nn.Conv2d(16, 32, 3, device="cuda").half()
        for size in (32, 48, 64):
            x = torch.randn(4, 16, size, size, device="cuda", dtype=torch.half)
            assert torch.isfinite(conv(x)).all()
        """
    )


def test_profiler_sees_memory():
    run(
        """
        from torch.profiler import profile, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
            block(4)
        assert max(event.self_device_memory_usage for event in prof.key_averages()) >= mib(4)
        """
    )


def test_sharing_with_another_process():
    run(
        """
        import torch.multiprocessing as mp
        handle = block(4).fill_(7).untyped_storage()._share_cuda_()
        assert handle[0] == 0
        """
    )


def test_nothing_is_counted_without_a_plan():
    run(
        """
        block(1)
        stats = livepool.stats()
        assert stats["cuda"] and (stats["passes"], stats["hits"], stats["arena_bytes"]) == (0, 0, 0)
        """
    )


def test_tensors_alive_at_exit():
    run("import builtins; builtins.kept = [block(1) for _ in range(10)]")


# What follows has an arena: eight linear layers and what lies between them, replayed from a plan.
PLANNED = INSTALL + """
model = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(1024, 1024), torch.nn.GELU())])
model = model.eval().cuda()
x = torch.randn(4096, 1024, device="cuda")
with torch.inference_mode():
    graph = livepool.capture(model, x)
def replay():
    with torch.inference_mode():
        return graph.replay(x)
del_me = replay(); del del_me
torch.cuda.synchronize()
"""


def test_slots_are_in_statistics_and_their_peak():
    run(
        """
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats(); torch.cuda.reset_accumulated_memory_stats()
        hits = livepool.stats()["hits"]
        y = replay()
        served = livepool.stats()["hits"] - hits
        assert served > 0 and livepool.stats()["live_bytes"] == 0
        stats = torch.cuda.memory_stats()
        assert stats["allocated_bytes.all.current"] == before + y.nbytes
        assert stats["allocation.all.allocated"] >= served
        peak = stats["allocated_bytes.all.peak"] - before
        arena = graph.report()["arena_bytes"]
        assert arena / 2 < peak <= arena + y.nbytes, (arena, peak, y.nbytes)
        """,
        prelude=PLANNED,
    )


def test_snapshot_has_the_arena_and_adds_up():
    run(
        """
        segments = torch.cuda.memory._snapshot()["segments"]
        assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
        assert sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated()
        assert livepool.stats()["arena_bytes"] in [s["total_size"] for s in segments]
        for s in segments:
            assert sum(b["size"] for b in s["blocks"]) == s["total_size"]
            assert sum(b["size"] for b in s["blocks"] if b["state"] == "active_allocated") == s["allocated_size"]
        from torch.cuda import _memory_viz
        assert _memory_viz.segment_plot({"segments": segments, "device_traces": []})
        """,
        prelude=PLANNED,
    )


def test_memory_history_has_slots():
    run(
        """
        torch.cuda.memory._record_memory_history(context="all", stacks="python")
        hits = livepool.stats()["hits"]
        y = replay()
        hits = livepool.stats()["hits"] - hits
        snapshot = torch.cuda.memory._snapshot()
        arena = next(s for s in snapshot["segments"] if s["total_size"] == livepool.stats()["arena_bytes"])
        inside = range(arena["address"], arena["address"] + arena["total_size"])
        actions = [entry["action"] for entry in snapshot["device_traces"][0] if entry["addr"] in inside]
        assert actions.count("alloc") == actions.count("free_completed") == hits > 0
        times = [entry["time_us"] for entry in snapshot["device_traces"][0]]
        assert times == sorted(times)
        """,
        prelude=PLANNED,
    )


def test_memory_limit_counts_upstream_and_arenas():
    run(
        """
        torch.cuda.empty_cache()
        livepool.trim()
        assert torch.cuda.get_per_process_memory_fraction() == 1
        livepool.set_memory_limit(torch.cuda.memory_reserved() + mib(48))  # the plan's arena is larger
        refused = livepool.stats()["refused"]
        try:
            expected = replay()
        except torch.OutOfMemoryError:
            pass
        assert livepool.stats()["refused"] == refused + 1
        assert torch.cuda.memory_reserved() <= livepool.memory_limit()
        assert torch.cuda.get_per_process_memory_fraction() == 1
        try:
            block(4096)
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("the limit was not kept")
        livepool.set_memory_limit(None)
        replay(); block(4096)
        assert livepool.stats()["refused"] == refused + 1
        """,
        prelude=PLANNED.replace("4096, 1024", "16384, 1024"),
    )


def test_trim_and_empty_cache_give_the_arena_back_to_the_driver():
    run(
        """
        for give_back in (livepool.trim, torch.cuda.empty_cache):
            replay()
            arena = livepool.stats()["arena_bytes"]
            torch.cuda.synchronize()
            free = torch.cuda.mem_get_info()[0]
            give_back()
            assert livepool.stats()["arena_bytes"] == 0
            assert torch.cuda.mem_get_info()[0] - free >= arena
        """,
        prelude=PLANNED,
    )


def test_trim_during_a_capture_is_refused_and_leaves_it_alone():
    run(
        """
        import threading
        out = []
        def trim():
            try:
                out.append(livepool.trim())
            except livepool.ArenaInUse as error:
                out.append(str(error))
        y = torch.zeros(8, device="cuda")
        cuda_graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(cuda_graph, capture_error_mode="thread_local"):
            y += 1
            thread = threading.Thread(target=trim); thread.start(); thread.join()
            y += 1
        assert "captured" in out[0], out
        cuda_graph.replay()
        torch.cuda.synchronize()
        assert (y == 2).all()
        """,
        prelude=PLANNED,
    )


def test_out_of_memory_says_what_the_arena_holds():
    run(
        """
        with torch.inference_mode():
            kept = graph.replay(x)
        free = torch.cuda.mem_get_info()[0]
        try:
            torch.empty(free + (1 << 40), dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            assert "CUDA out of memory" in str(error)
        else:
            raise AssertionError("no error")
        assert livepool.stats()["arena_bytes"] == 0, "idle arenas are given back before the error"
        assert torch.equal(replay(), kept)
        """,
        prelude=PLANNED,
    )
