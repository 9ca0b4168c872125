"""livepool: planned memory for PyTorch inference.

    import torch, livepool

    livepool.install("cpu")                       # or "cuda"; before other threads run
    model = livepool.wrap(model.eval())           # captured at the second call of each signature, replayed from then on
    with torch.inference_mode():
        output = model(x)

    graph = livepool.capture(model, example)      # or by hand: runs the model once, plans its buffers
    output = graph.replay(other_input)            # the same ops, from one arena

    with livepool.pass_scope("step"):             # or: the program as it is, served from a plan
        output = model(other_input)

    livepool.serve_eager_code()                   # or even that is found (LIVEPOOL=1, livepool run app.py)

Sizes are bytes, times milliseconds. Errors are livepool.Error and its subclasses; what an operator raises
comes through unchanged.
"""

from __future__ import annotations

import torch  # noqa: F401  (its libraries must be loaded before ours)

from livepool import _livepool
from livepool._livepool import (
    ArenaInUse,
    CaptureDisturbed,
    CaptureRefused,
    CheckFailed,
    Error,
    GuardFailed,
    InvalidInput,
    InvalidPlan,
    NotInstalled,
    PlansRefused,
    ReplayMismatch,
    UnsupportedTorch,
)
from livepool.allocator import Allocator, memory_limit, set_memory_limit
from livepool.capture import Captured, capture
from livepool.disabled import disabled
from livepool.explain import Explanation, SignatureReport
from livepool.plans import load_plans, save_plans
from livepool.scope import pass_scope, scope_stats, serve_eager_code, wait_for_plans
from livepool.wrap import consume, explain, unwrap, wrap

__version__ = "0.1.0"

__all__ = [
    "Allocator", "ArenaInUse", "CaptureDisturbed", "Captured", "CaptureRefused", "CheckFailed", "Error", "Explanation",
    "GuardFailed", "InvalidInput", "InvalidPlan", "NotInstalled", "PlansRefused", "ReplayMismatch", "SignatureReport",
    "UnsupportedTorch", "capture", "consume", "disabled", "explain", "install", "load_plans", "memory_limit", "pass_scope",
    "save_plans", "scope_stats", "serve_eager_code", "set_memory_limit", "stats", "trim", "unwrap", "wait_for_plans", "wrap",
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
    (allocations served from a plan, in replays and in scopes), `misses` (served by PyTorch's allocator though a pass was running and
    the plan did not say so), `upstream` (served by it as planned: outputs), `refused` (passes for which no arena could
    be had, which ran on PyTorch's memory), `live_bytes` (in planned tensors that are alive now), `arena_bytes` (mapped
    now, over all devices), `arena_bytes_of` (the same by device) and `eager_code`.

    `eager_code` is a dict of what was done for plain eager code that names no scopes (serve_eager_code): `active`, or
    else `why_not` in words; `threads` that were looked at, and how many of them are `serving`, `looking` for passes that
    repeat, or `asleep` as nothing repeats; `allocations` in all; and of the passes that were found what scope_stats
    says of a scope's, bytes being those of the largest."""
    return _livepool.stats()


def trim() -> int:
    """Gives the memory of idle arenas back to the device; returns the bytes. Addresses stay reserved, and the next
    pass maps what it needs again. A tensor that still lies in an arena keeps what is below it.
    Raises ArenaInUse, and frees nothing, while a pass runs, a CUDA graph over an arena lives, or a graph is being
    captured. torch.cuda.empty_cache() does the same for CUDA, but skips such arenas silently."""
    return _livepool.trim()
