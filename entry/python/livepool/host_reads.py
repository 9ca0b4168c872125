"""Reads of a tensor's bytes that bypass the dispatcher: a capture in which one happens is refused.

A TorchFunctionMode would see them too, but while one is active torch.overrides.has_torch_function is true for
every tensor, and nn.MultiheadAttention, for one, leaves its fast path then: the capture would record other
operators than eager runs. So the few methods of torch.Tensor are replaced for as long as a capture runs; on
other threads they do what they always did.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator

import torch

from livepool import _livepool

_METHODS = ("tolist", "numpy", "__array__", "__dlpack__", "data_ptr", "untyped_storage", "storage", "_typed_storage", "apply_",
            "map_", "map2_", "share_memory_", "__reduce_ex__")
_lock = threading.Lock()
_captures = 0
_hidden: dict[str, object] = {}  # what torch.Tensor itself (not its base) had under a name


def _refuse(name: str) -> None:
    _livepool.refuse_capture(f"the program reads or replaces a tensor's bytes through Tensor.{name}, which a graph cannot repeat")


def _watched_method(name: str):
    original = getattr(torch.Tensor, name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        _refuse(name)
        return original(self, *args, **kwargs)

    return method


def _watched_data() -> property:
    original = torch.Tensor.data

    def assign(self, value):
        _refuse("data = …")
        original.__set__(self, value)

    return property(original.__get__, assign)


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """While it is entered, host reads on a thread that captures refuse the capture."""
    global _captures
    with _lock:
        _captures += 1
        if _captures == 1:
            replacements = {name: _watched_method(name) for name in _METHODS if hasattr(torch.Tensor, name)}
            replacements["data"] = _watched_data()
            for name, replacement in replacements.items():
                _hidden[name] = torch.Tensor.__dict__.get(name)
                setattr(torch.Tensor, name, replacement)
    try:
        yield
    finally:
        with _lock:
            _captures -= 1
            if _captures == 0:
                for name, own in _hidden.items():
                    if own is None:
                        delattr(torch.Tensor, name)
                    else:
                        setattr(torch.Tensor, name, own)
                _hidden.clear()
