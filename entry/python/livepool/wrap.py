"""wrap(): a module that captures and replays itself."""

from __future__ import annotations

from typing import Any, TypeVar

import torch

from livepool._livepool import InvalidInput
from livepool.capture import as_call, make_options
from livepool.explain import Explanation
from livepool.wrapped_forward import WrappedForward

Module = TypeVar("Module", bound=torch.nn.Module)


def wrap(module: Module, *, max_graphs: int = 16, capture_after: int = 2, mode: str = "replay", outputs: str = "fresh") -> Module:
    """Has `module` replay its passes from planned memory from now on; returns it.

        model = livepool.wrap(AutoModelForCausalLM.from_pretrained(name).eval().cuda())
        with torch.inference_mode():
            model.generate(**inputs)        # as before
        print(livepool.explain(model))      # what was captured, what was not, and why

    Only `forward` of this instance is replaced: type, attributes, hooks and state_dict stay; copies and pickles are
    unwrapped. Each signature (shapes, dtypes, devices, nesting, everything that is no tensor, autocast) is captured at
    its `capture_after`-th call and replayed from then on: the same kernels, the same results, bit for bit. What cannot be captured
    runs as it is, and one message on the logger "livepool" says why; calls in grad mode or training mode run as they
    are without a message. At most `max_graphs` graphs are kept, those that were used most recently. A graph whose
    module has changed (other weights, hooks, attributes) is dropped.

    Any number of threads may call the module: replays of one graph run side by side, each from an arena of its own, and
    a capture stops no other thread's replays.

    mode and outputs are those of capture(): with mode="graph" a replay is one launch of a CUDA graph where that can be,
    with outputs="arena" its results are good until the calling thread's next pass. consume(module, [x]) is a call that frees x
    early.

    Wrapping again forgets all graphs and reasons, and takes the new options. Raises InvalidInput if `module` is
    no torch.nn.Module, or an option is none of those named here. Call livepool.install() before the first call.
    """
    if not isinstance(module, torch.nn.Module):
        raise InvalidInput(f"wrap() needs a torch.nn.Module, not a {type(module).__name__}; capture() takes functions")
    for name, value in (("max_graphs", max_graphs), ("capture_after", capture_after)):
        if not isinstance(value, int) or value < 1:
            raise InvalidInput(f"{name} is {value!r}; it must be an integer, at least 1")
    options = make_options(mode, outputs)
    unwrap(module)
    wrapped = WrappedForward(module, max_graphs, capture_after, options)
    # Not through __setattr__, which modules may define. pickle and copy look for __getstate__ on the instance.
    module.__dict__["forward"] = wrapped
    module.__dict__["__getstate__"] = wrapped.state_without_wrap
    return module


def unwrap(module: Module) -> Module:
    """Puts the module's own `forward` back, and drops its graphs; returns it. Does nothing to one that is not wrapped.

    Raises InvalidInput if somebody has put another `forward` over the wrapped one, who must take that back first.
    """
    wrapped = _wrapped_forward(module)
    if wrapped is None:
        return module
    if module.__dict__.get("forward") is not wrapped:
        raise InvalidInput(f"forward of this {type(module).__name__} was set after wrap(); take that back first")
    del module.__dict__["__getstate__"]
    if wrapped.own is not None:
        module.__dict__["forward"] = wrapped.own
    else:
        del module.__dict__["forward"]
    wrapped.cache.clear()
    return module


def consume(module: torch.nn.Module, arguments: list | dict, /) -> Any:
    """module(*arguments), or module(**arguments) for a dict, and empties it: for inputs that the caller gives up.

        output = livepool.consume(model, [batch.cuda()])

    Where a replay serves the call, a tensor that nobody else holds is freed after the last operator that uses it, and not
    only after the call: what PyTorch's allocator serves later in the pass, outputs for one, can have its memory. An error
    inside that replay is the caller's. In all other cases this is the plain call: the module is not wrapped or has hooks of
    its own, the call is not captured (yet), its replay is one that is checked, can be given up, or is a CUDA graph.
    Raises InvalidInput if `arguments` is neither a list nor a dict.
    """
    wrapped = _wrapped_forward(module) if isinstance(module, torch.nn.Module) else None
    if wrapped is not None and module.__dict__.get("forward") is wrapped and _calls_forward_alone(module):
        return wrapped.consume(arguments)
    args, kwargs = as_call(arguments)
    arguments.clear()
    return module(*args, **kwargs)


def explain(module: torch.nn.Module) -> Explanation:
    """What a wrapped module does with its calls: its signatures with their graphs or the reasons why they have none,
    and why calls ran as they are. Print it, or read its fields (see Explanation). Raises InvalidInput if the module is not wrapped."""
    return wrapped_forward(module).explain()


def wrapped_forward(module: torch.nn.Module) -> WrappedForward:
    """What stands in the place of the module's `forward`. Raises InvalidInput if the module is not wrapped."""
    wrapped = _wrapped_forward(module) if isinstance(module, torch.nn.Module) else None
    if wrapped is None:
        raise InvalidInput(f"this {type(module).__name__} is not wrapped; livepool.wrap(module) does that")
    return wrapped


def _calls_forward_alone(module: torch.nn.Module) -> bool:
    """Whether a call of the module is one of its forward, and nothing else."""
    own = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_compiled_call_impl")
    return (type(module).__call__ is torch.nn.Module.__call__ and not any(module.__dict__.get(name) for name in own)
            and not torch.nn.modules.module._has_any_global_hook())


def _wrapped_forward(module: torch.nn.Module) -> WrappedForward | None:
    return getattr(module.__dict__.get("__getstate__"), "__self__", None)
