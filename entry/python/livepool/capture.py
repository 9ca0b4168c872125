"""capture(): from a callable to a graph that can be replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from livepool import _livepool, host_reads
from livepool._livepool import CaptureRefused, CheckFailed
from livepool.state import State
from livepool.structure import Structure, is_constant


class Captured:
    """The captured pass of a callable. Made by capture(); safe to replay from several threads."""

    def __init__(self, graph: _livepool.ExecGraph, arguments: Structure, results: Structure, state: State) -> None:
        self._graph = graph
        self._arguments = arguments
        self._results = results
        self._state = state

    def replay(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the captured ops on other tensors of the same shapes, and returns what the callable would return.

        Raises ReplayMismatch if an argument or the state differs from the capture's in anything but the bytes,
        GuardFailed if a value that the program had read on the host differs, CheckFailed if the first replay on
        other bytes was not equal to the callable's own result (see LIVEPOOL_CHECK).
        """
        tensors = self._arguments.tensors_of(_call(args, kwargs))
        self._state.check()
        return self._results.rebuild(self._graph.replay(tensors))

    def report(self) -> dict:
        """Sizes in bytes and times in ms: ops, buffers, sum_bytes, eager_live_peak_bytes, lower_bound_bytes,
        arena_bytes, capture_ms, plan_ms, replays, hits, misses, …"""
        return self._graph.report()


def capture(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Captured:
    """Runs fn(*args, **kwargs) once, records its operators, and plans the memory of a replay.

    fn is a module in eval mode or a function of tensors; grad mode must be off. Tensors that it owns (parameters,
    buffers, closure variables) are used by reference: their bytes may change between replays, they may not be
    replaced. Raises NotInstalled before livepool.install(), and CaptureRefused, naming the operator or the argument,
    where a graph would not do what fn does.
    """
    return _capture(fn, args, kwargs, in_place=True)


def _capture(fn: Callable[..., Any], args: tuple, kwargs: dict, in_place: bool) -> Captured:
    if not callable(fn):
        raise TypeError(f"capture() needs a callable, not a {type(fn).__name__}")
    arguments, tensors = Structure.of(_call(args, kwargs), "call")
    state = State.of(fn, [leaf for leaf in arguments.others if not is_constant(leaf) and not Structure.is_tensor(leaf)])
    results: list[Structure] = []

    def flat(flat_inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        # The recorded call gets the caller's own containers, as it may keep them.
        call_args, call_kwargs = arguments.rebuild(flat_inputs) if results else (args, kwargs)
        structure, flat_outputs = Structure.of(fn(*call_args, **call_kwargs), "result")
        if not results:
            results.append(structure)
            if not arguments.is_structure_of(_call(args, kwargs), tensors):
                raise CaptureRefused("the pass changes a container among its arguments; a replay would not")
            state.check_pass()
        elif not structure.equals(results[0]):
            raise CheckFailed(f"the callable returns {structure.others} in {structure.spec} now, and returned {results[0].others} in "
                              f"{results[0].spec} at the capture; capture it for this case too")
        return flat_outputs

    names = [name for name, other in zip(arguments.names, arguments.others) if Structure.is_tensor(other)]
    with host_reads.refused():
        graph = _livepool.capture(flat, tensors, state.tensors, names, in_place)
    for name, other in zip(results[0].names, results[0].others):
        if not is_constant(other) and not results[0].is_tensor(other) and not any(other is each for each in arguments.others):
            raise CaptureRefused(f"{name} is a {type(other).__name__}, which a replay cannot make anew; return tensors, numbers and "
                                 "containers of them")
    return Captured(graph, arguments, results[0], state)


def _call(args: tuple, kwargs: dict[str, Any]) -> tuple:
    """A call as one nested object; the order of keywords does not matter."""
    return args, dict(sorted(kwargs.items()))
