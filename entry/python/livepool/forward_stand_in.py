"""An object in the place of a module's `forward` that others take for the forward itself."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from livepool.state import StandIn


class ForwardStandIn(StandIn):
    """Knows the forward that was there before. What others read of a forward (its signature, its name, its code, a
    script method's graph) is that one's; copies and pickles of the module do not have it.

    The module is held weakly: no reference cycle keeps it, and its memory, when nobody needs it any more.
    """

    __slots__ = ("_module", "__weakref__")

    def __init__(self, module: torch.nn.Module, on_death: Callable[[Any], None]) -> None:
        self.own = module.__dict__.get("forward")  # a forward of the instance itself, as others set it too
        self._module = weakref.ref(module, on_death)

    @property
    def module(self) -> torch.nn.Module:
        module = self._module()
        if module is None:
            raise ReferenceError("the module of this wrapped forward is gone; keep the module itself")
        return module

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The forward that was there before: what inspect.signature() shows, and what runs as it is."""
        if self.own is not None:
            return self.own
        module = self.module
        forward = next(vars(cls)["forward"] for cls in type(module).__mro__ if "forward" in vars(cls))
        return forward.__get__(module, type(module))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<livepool.wrap of {self.__wrapped__!r}>"

    def __reduce__(self) -> tuple:
        return getattr, (self.module, "forward")  # as a bound method is pickled

    def state_without_wrap(self) -> Any:
        """The module's __getstate__: copies and pickles of it are unwrapped."""
        module = self.module
        get = getattr(type(module), "__getstate__", None)  # object has it since Python 3.11
        state = module.__dict__ if get is None else get(module)
        if not isinstance(state, dict):
            return state
        without = {key: value for key, value in state.items() if value is not self and key != "__getstate__"}
        if self.own is not None and "forward" not in without:
            without["forward"] = self.own
        return without
