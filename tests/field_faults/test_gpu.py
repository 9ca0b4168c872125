"""The rows that need a GPU. Each program has a plan in use: without one, see
tests/allocator/torch/test_cuda_allocator.py. In ctest: cuda_conformance_gpu_test and cuda_backend_gpu_test."""

import pytest

pytestmark = pytest.mark.gpu


def test_out_of_memory_is_torchs_error(program):
    """Field fault 3: a replay whose arena cannot be had, and a request for more than there is."""
    program(
        """
        graph = livepool.capture(network, ones(2048))
        argument = ones(2048, 0.5)
        want = network(argument)
        livepool.trim(); torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (4 << 20)) / total)
        for refused in (lambda: graph.replay(argument), lambda: torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)):
            try:
                refused()
            except torch.OutOfMemoryError:
                continue
            raise AssertionError("expected torch.OutOfMemoryError")
        assert torch.ones(100, device=DEVICE).sum() == 100
        torch.cuda.set_per_process_memory_fraction(1.0)
        assert torch.equal(graph.replay(argument), want)
        """,
        device="cuda",
        LIVEPOOL_CHECK="off",
    )


def test_statistics_count_the_arena(program):
    """Field fault 4."""
    program(
        """
        from torch.cuda import _memory_viz
        graph = livepool.capture(network, ones(2048))
        graph.replay(ones(2048))
        torch.cuda.empty_cache()
        graph.replay(ones(2048))
        arena = livepool.stats()["arena_bytes"]
        assert arena >= 3 * 2048 * 2048 * 4 // 2, arena
        snapshot = torch.cuda.memory._snapshot()
        held = sum(s["total_size"] for s in snapshot["segments"])
        assert torch.cuda.memory_reserved() == held >= arena, (torch.cuda.memory_reserved(), held, arena)
        for segment in snapshot["segments"]:
            assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
        assert torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
        assert torch.cuda.memory_stats()["reserved_bytes.all.current"] == held
        torch.cuda.reset_peak_memory_stats(); torch.cuda.reset_accumulated_memory_stats()
        assert torch.cuda.max_memory_reserved() == torch.cuda.memory_reserved() == held
        assert torch.accelerator.memory_reserved() == held
        assert "Allocated memory" in torch.cuda.memory_summary()
        assert "total_reserved" in _memory_viz.segsum(snapshot)
        livepool.trim()
        assert torch.cuda.memory_reserved() == held - arena
        """,
        device="cuda",
    )


def test_cudnn_benchmark(program):
    """Field fault 5."""
    program(
        """
        torch.backends.cudnn.benchmark = True
        model = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 16, 5)).cuda().eval()
        for size in (32, 48):
            x = torch.randn(4, 16, size, size, device=DEVICE)
            graph = livepool.capture(model, x)
            for i in range(5):
                torch.testing.assert_close(graph.replay(x * i), model(x * i))
            assert graph.report()["hits"] > 0
        """,
        device="cuda",
    )


@pytest.mark.parametrize("give_back", ["livepool.trim()", "torch.cuda.empty_cache()"])
def test_the_driver_gets_the_arena_back(program, give_back):
    """Field fault 6."""
    program(
        f"""
        graph = livepool.capture(network, ones(4096))
        graph.replay(ones(4096)); graph.replay(ones(4096))
        torch.cuda.empty_cache()
        graph.replay(ones(4096))
        torch.cuda.synchronize()
        arena = livepool.stats()["arena_bytes"]
        before = torch.cuda.mem_get_info()[0]
        {give_back}
        freed = torch.cuda.mem_get_info()[0] - before
        assert arena >= 64 << 20 and freed >= arena, f"arena {{arena}} bytes, the driver got {{freed}}"
        assert torch.equal(graph.replay(ones(4096)), network(ones(4096)))
        """,
        device="cuda",
    )


def test_out_of_memory_during_a_capture(program):
    """Field fault 10: an allocation that cannot be met while the user captures a CUDA graph."""
    program(
        """
        graph = livepool.capture(network, ones(512))
        graph.replay(ones(512))
        arena = livepool.stats()["arena_bytes"]
        x = ones(512)
        captured = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(captured):
                y = x + 1
                torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)
        except torch.OutOfMemoryError:
            print("out of memory")
        torch.cuda.synchronize()
        assert livepool.stats()["arena_bytes"] in (0, arena)
        assert torch.equal(graph.replay(ones(512, 2)), network(ones(512, 2)))
        """,
        device="cuda",
    )


def test_record_stream(program):
    """Field fault 14: a slow kernel on another stream reads a tensor of the pass, which is freed meanwhile; the
    slot's next owner waits, or the tensor has moved. 200 repeats."""
    program(
        """
        side = torch.cuda.Stream()
        seen = []
        library = torch.library.Library("field_faults", "FRAGMENT")
        library.define("read_slowly(Tensor x) -> Tensor")
        def read_slowly(x):
            y = x * 3
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(2_000_000)
                seen.append(y.clone())
            y.record_stream(side)
            return y + 1
        library.impl("read_slowly", read_slowly, "CompositeExplicitAutograd")
        def fn(x):
            y = torch.ops.field_faults.read_slowly(x + 1)
            for i in range(4): y = (y * 2).sin()
            return y
        try:
            graph = livepool.capture(fn, ones(256))
        except livepool.CaptureRefused as refused:
            assert "stream" in str(refused), refused
            raise SystemExit(0)                # a second stream in a capture is refused: nothing to go wrong
        seen.clear()
        for i in range(200):
            graph.replay(ones(256, i))
            torch.cuda.synchronize()
            assert (seen.pop() == (i + 1) * 3).all(), f"repeat {i}: the bytes were reused too early"
        """,
        device="cuda",
        LIVEPOOL_CHECK="off",
    )


def test_two_sizes_in_turns(program):
    """Field fault 15."""
    program(
        """
        def fn(x, past): return torch.cat([past, x]) @ x.t()
        past = torch.arange(512., device=DEVICE).view(64, 8)
        inputs = [torch.ones(16, 8, device=DEVICE), torch.ones(1, 8, device=DEVICE)]
        graphs = [livepool.capture(fn, x, past) for x in inputs]
        for step in range(50):
            x = inputs[step % 2] * step
            assert torch.equal(graphs[step % 2].replay(x, past), fn(x, past)), f"step {step}"
        """,
        device="cuda",
    )


def test_a_trim_leaves_a_captured_graph_alone(program):
    """Field fault 18: a CUDA graph of the user's, captured over a replay, keeps its memory through every trim."""
    program(
        """
        graph = livepool.capture(network, ones(256))
        x = ones(256)
        for _ in range(3): graph.replay(x)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            y = graph.replay(x)
        for i in range(5):
            livepool.trim(); torch.cuda.empty_cache()
            junk = [torch.full((1 << 20,), float("nan"), device=DEVICE) for _ in range(20)]
            x.fill_(i)
            captured.replay()
            torch.cuda.synchronize()
            torch.testing.assert_close(y, network(ones(256, i)))
        """,
        device="cuda",
        LIVEPOOL_CHECK="off",
    )
