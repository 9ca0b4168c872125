"""save_plans() and load_plans(): what a wrapped module's captures have learnt, for another process."""

from __future__ import annotations

import os

import torch

from livepool.wrap import wrapped_forward


def save_plans(module: torch.nn.Module, path: str | os.PathLike[str]) -> int:
    """Writes the plans of all signatures of a wrapped module that have a graph to a file; returns how many.

        livepool.wrap(model); …                     # where there is room: a large card, or no limit
        livepool.save_plans(model, "model.plans")

        livepool.wrap(model)                        # where there is less, in another process
        livepool.load_plans(model, "model.plans")
        model(x)                                    # captured and planned at once, in the plan's memory

    Plans that were loaded and have not been needed yet are written, too. The file is JSON, one plan a line, and holds no
    weights and no code. It takes the place of what was there once it is complete.
    Raises InvalidInput if the module is not wrapped, has no graph yet, or the file cannot be written.
    """
    return wrapped_forward(module).save_plans(os.fsdecode(path))


def load_plans(module: torch.nn.Module, path: str | os.PathLike[str]) -> int:
    """Reads what save_plans() has written; returns how many plans there are.

    A signature that has a plan is captured at its first call. That call, too, has its memory from an arena, whose size is
    what the module itself has alive at once; what PyTorch's allocator would hold beyond that is not needed. The module
    runs and is recorded as ever, so that a file cannot make a result wrong. If its operators or their allocations are not
    those of the file, one message says what differs, and it is planned as without the file.

    Loading again forgets what was loaded before, and so does wrapping again. The file may come from anywhere: it is
    checked as data, and nothing in it is run.
    Raises InvalidInput if the module is not wrapped, or the file cannot be read or is damaged; InvalidPlan if a plan in it
    would let two living buffers share a byte; PlansRefused if it was saved for a module with other parameters or buffers
    (names, dtypes, shapes, kind of device), under another torch, or in another format.
    """
    return wrapped_forward(module).load_plans(os.fsdecode(path))
