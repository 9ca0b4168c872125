"""livepool: planned memory for PyTorch inference.

    import torch, livepool

    livepool.install("cpu")                       # or "cuda"; before other threads run
    with torch.inference_mode():
        graph = livepool.capture(model, example)  # runs the model once, plans its buffers
        output = graph.replay(other_input)        # the same ops, from one arena

    with livepool.pass_scope("step"):             # or: the program as it is, served from a plan
        output = model(other_input)

Sizes are bytes, times milliseconds. Errors are livepool.Error and its subclasses; what an operator raises
comes through unchanged.
"""

from __future__ import annotations

import torch  # noqa: F401  (its libraries must be loaded before ours)

from livepool import _livepool
from livepool._livepool import (
    CaptureRefused,
    CheckFailed,
    Error,
    GuardFailed,
    InvalidInput,
    InvalidPlan,
    NotInstalled,
    ReplayMismatch,
    UnsupportedTorch,
)
from livepool.allocator import Allocator
from livepool.capture import Captured, capture
from livepool.scope import pass_scope, scope_stats, wait_for_plans

__version__ = "0.1.0"

__all__ = [
    "Allocator", "Captured", "CaptureRefused", "CheckFailed", "Error", "GuardFailed", "InvalidInput", "InvalidPlan",
    "NotInstalled", "ReplayMismatch", "UnsupportedTorch", "capture", "install", "pass_scope", "scope_stats", "stats",
    "trim", "wait_for_plans",
]


def install(device: str = "auto") -> None:
    """Puts livepool's allocator in the place of PyTorch's own; what is not planned still goes to PyTorch's.

    device: "cpu", "cuda", or "auto" (the CPU, and CUDA where this build and this machine have it).
    Call it before other threads allocate; later calls do nothing.
    Raises UnsupportedTorch if torch is not the release that livepool was built for, InvalidInput for another
    device, Error if the device is not in this build.
    """
    if device == "auto":
        _livepool.install("cpu")
        if _livepool.has_cuda and torch.cuda.is_available():
            _livepool.install("cuda")
    else:
        _livepool.install(device)


def stats() -> dict:
    """What livepool does in this process: `active`, `cpu`, `cuda` (installed and in use), `passes`, `hits`
    (allocations served from a plan, in replays and in scopes), `misses` (served by PyTorch's allocator though a
    pass was running and the plan did not say so), `upstream` (served by it as planned: outputs), `arena_bytes` (mapped now, over all
    devices) and `arena_bytes_of` (the same by device)."""
    return _livepool.stats()


def trim() -> int:
    """Gives the memory of idle arenas back to the device; returns the bytes. Addresses stay reserved, and the next
    pass maps what it needs again."""
    return _livepool.trim()
