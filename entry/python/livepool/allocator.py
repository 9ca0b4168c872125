"""livepool's CUDA allocator as an object, and the limit of its memory."""

from __future__ import annotations

from livepool import _livepool


class Allocator:
    """livepool's CUDA allocator for torch.cuda.memory.change_current_allocator, which must be called before
    CUDA is initialised. livepool.install("cuda") does the same at any time."""

    def allocator(self):
        """The object that PyTorch takes. Raises Error in a build without CUDA."""
        if not _livepool.has_cuda:
            raise _livepool.Error("this build of livepool has no CUDA: build it with -DLIVEPOOL_WITH_CUDA=ON")
        return _livepool.cuda_allocator()


def set_memory_limit(limit: int | str | None) -> None:
    """What livepool's arenas and PyTorch's own allocator (its reserved bytes) may hold together, on each CUDA device.

    limit: bytes, a size such as "8GiB", or None for no limit. LIVEPOOL_MEMORY_LIMIT sets it at the start.
    A plan whose arena would exceed it first has idle arenas and PyTorch's cache given back; if that is not enough, it
    runs on PyTorch's memory (stats()["refused"] counts these passes), for which the limit holds too: beyond it there
    is torch.OutOfMemoryError. The lower one of this limit and torch.cuda.set_per_process_memory_fraction holds.
    On the CPU nothing is limited. Raises InvalidInput for what is no size, Error in a build without CUDA.
    """
    if isinstance(limit, str):
        limit, text = _livepool.parse_bytes(limit), limit
        if limit is None:
            raise _livepool.InvalidInput(f"'{text}' is no size: use a number of bytes, or one such as '8GiB' or '512MiB'")
    _livepool.set_memory_limit(limit)


def memory_limit() -> int | None:
    """The limit of set_memory_limit or LIVEPOOL_MEMORY_LIMIT, in bytes; None: there is none."""
    return _livepool.memory_limit()
