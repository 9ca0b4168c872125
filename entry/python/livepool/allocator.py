"""The way in that PyTorch offers itself: torch.cuda.memory.change_current_allocator(livepool.Allocator())."""

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
