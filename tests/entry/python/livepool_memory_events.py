"""What a call allocates on the CPU, from the profiler's memory events: those of PyTorch's allocator and of slots."""

from torch.profiler import ProfilerActivity, profile


def peak_bytes(call):
    """The result of `call`, and the most that it had allocated, minus freed, at one moment."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = call()
    sizes = [(event.start_ns(), event.nbytes()) for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert sizes, "the profiler has seen no allocation"
    now = peak = 0
    for _, size in sorted(sizes, key=lambda each: each[0]):
        now += size
        peak = max(peak, now)
    return result, peak
