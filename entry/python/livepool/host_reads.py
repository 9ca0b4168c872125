"""Reads of a tensor's bytes that bypass the dispatcher: a capture in which one happens is refused.

A TorchFunctionMode would see them too, but while one is active torch.overrides.has_torch_function is true for
every tensor, and nn.MultiheadAttention, for one, leaves its fast path then: the capture would record other
operators than eager runs. So the few methods of torch.Tensor, and functions that do the same, are replaced for as
long as a capture runs; on other threads they do what they always did.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from livepool import _livepool

_METHODS = ("tolist", "numpy", "__array__", "__dlpack__", "data_ptr", "untyped_storage", "storage", "_typed_storage", "apply_",
            "map_", "map2_", "share_memory_", "__reduce_ex__")
_lock = threading.Lock()
_captures = 0
_hidden: list[tuple[Any, str, object]] = []  # owner, name, and what the owner itself (not its base) had there


def _refuse(what: str) -> None:
    _livepool.refuse_capture(f"the program reads or replaces a tensor's bytes through {what}, which a graph cannot repeat")


def _watched(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(*args, **kwargs):
        _refuse(what)
        return original(*args, **kwargs)

    return function


def _watched_data() -> property:
    original = torch.Tensor.data

    def assign(self, value):
        _refuse("Tensor.data = …")
        original.__set__(self, value)

    return property(original.__get__, assign)


def _replace() -> None:
    replacements = [(torch.Tensor, name, _watched(getattr(torch.Tensor, name), f"Tensor.{name}"))
                    for name in _METHODS if hasattr(torch.Tensor, name)]
    replacements.append((torch.Tensor, "data", _watched_data()))
    to_dlpack = _watched(torch.to_dlpack, "torch.to_dlpack")
    replacements += [(module, "to_dlpack", to_dlpack) for module in list(sys.modules.values())  # some have imported its name
                     if getattr(module, "__dict__", {}).get("to_dlpack") is torch.to_dlpack]
    for owner, name, replacement in replacements:
        _hidden.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, replacement)


def _put_back() -> None:
    for owner, name, own in _hidden:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
    _hidden.clear()


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """While it is entered, host reads on a thread that captures refuse the capture."""
    global _captures
    with _lock:
        _captures += 1
        if _captures == 1:
            _replace()
    try:
        yield
    finally:
        with _lock:
            _captures -= 1
            if _captures == 0:
                _put_back()
