"""capture(): from a callable to a graph that can be replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from livepool import _livepool, host_reads
from livepool._livepool import CaptureRefused, CheckFailed, InvalidInput
from livepool.disabled import disabled
from livepool.state import State
from livepool.structure import Structure, check_unchangeable


class Captured:
    """The captured pass of a callable. Made by capture(); safe to replay from several threads."""

    def __init__(self, graph: _livepool.ExecGraph, call: "FlatCall") -> None:
        self._graph = graph
        self._call = call  # the graph itself holds it weakly

    def replay(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the captured ops on other tensors of the same shapes, and returns what the callable would return.

        Raises ReplayMismatch if an argument, an attribute or a setting differs from the capture's in anything but
        the bytes of tensors, GuardFailed if a value that the program had read on the host differs, CheckFailed if the
        first replay on other bytes was not equal to the callable's own result (see LIVEPOOL_CHECK).
        """
        return self.replay_flat(self._call.arguments.tensors_of(_call(args, kwargs)))

    def replay_flat(self, tensors: list[torch.Tensor]) -> Any:
        """replay() for a call of which all but the tensors is known to be as at the capture."""
        if self._graph.disposable():
            # The state is looked at while the device works: if it was replaced, the outputs are thrown away.
            outputs = self._graph.replay(tensors)
            self._call.state.check()
        else:
            self._call.state.check()
            outputs = self._graph.replay(tensors)
        return self._call.results.rebuild(outputs)

    def consume(self, arguments: list | dict, /) -> Any:
        """replay(*arguments), or replay(**arguments) for a dict, and empties it: a tensor of it that nobody else holds is freed
        after the last operator that uses it, so that what comes later in the pass can have its memory. A replay as a CUDA
        graph, and one that is checked, holds the tensors to its end. A replay that does not begin (ReplayMismatch) leaves
        the arguments where they are; after any other exception they are gone."""
        args, kwargs = as_call(arguments)
        tensors = self._call.arguments.tensors_of(_call(args, kwargs))
        self._call.state.check()
        del args, kwargs
        arguments.clear()
        try:
            return self.consume_flat(tensors)
        except Exception:
            if tensors:
                put_back(self.call_with(tensors), arguments)
            raise

    def consume_flat(self, tensors: list[torch.Tensor]) -> Any:
        """consume() for a call of which all but the tensors is known to be as at the capture. They stay in the list if the replay
        does not begin."""
        self._call.state.check()
        return self._call.results.rebuild(self._graph.consume(tensors))

    def call_with(self, tensors: list[torch.Tensor]) -> tuple[tuple, dict[str, Any]]:
        """Arguments and keywords of a call with these tensors."""
        return self._call.arguments.rebuild(tensors)

    def report(self) -> dict:
        """Sizes in bytes and times in ms: ops, buffers, sum_bytes, eager_live_peak_bytes, lower_bound_bytes,
        arena_bytes, capture_ms, plan_ms, replays, hits, misses, …; searching: a better plan is being looked for; as_saved: the plan is one that was
        loaded, not_as_saved: why it is not, though there was one; launches: of
        a CUDA graph; not_launched: why the last replay was no launch, if mode="graph"."""
        return self._graph.report()

    def put_plan(self, plans: _livepool.SavedPlans, key: _livepool.CallKey) -> None:
        """Puts the plan among those that are saved, for calls with this key."""
        plans.put(key, self._graph)

    def unconditional(self) -> bool:
        """Whether a replay whose arguments fit cannot be given up: nothing in it is guarded, and it will not be checked (any
        more)."""
        return self._graph.unconditional()

    def writes(self) -> bool:
        """Whether a replay writes to its arguments or to the state."""
        return self._graph.writes()


def capture(fn: Callable[..., Any], *args: Any, mode: str = "replay", outputs: str = "fresh", **kwargs: Any) -> Captured:
    """Runs fn(*args, **kwargs) once, records its operators, and plans the memory of a replay.

    fn is a module in eval mode or a function of tensors; grad mode must be off. What it owns (parameters, buffers and
    other attributes of modules and objects, closure variables) is used by reference: the bytes of its tensors may
    change between replays; after any other change a replay raises ReplayMismatch, or does not see it if it is in a
    global variable, a class, a set or an array. The example arguments are not kept, apart from objects that are no
    tensors. Raises NotInstalled before livepool.install(), and CaptureRefused, naming the operator or the argument,
    where a graph would not do what fn does.

    mode: "replay" runs the operators one by one. "graph" captures them into a CUDA graph, which a replay launches; a pass
    that cannot be one (it is on the CPU, the host reads a result, an operator waits for the device) is replayed, and one
    line on stderr and report()["not_launched"] say why. Arguments are copied in, but those that the pass writes to or
    returns are used where they lie: a replay with others of them runs the operators one by one. CUDA graphs pin the
    arena's memory while they live: trim() raises then.
    outputs: "fresh" ones live outside the arena and are the caller's. "arena" gives the arena's own bytes, which costs no
    other memory and, with mode="graph", no copy. They are on loan: good until the calling thread runs its next pass on the
    device (a replay of whichever graph, a pass_scope, the capture of a CUDA graph). What a tensor shows that is kept
    longer is undefined, NaN with LIVEPOOL_FILL=nan; to drop it late is harmless. One that is an argument of that next
    replay gets memory of its own before, and is good for ever. Outputs of a replay that is checked are fresh.
    An argument of fn that is itself called mode or outputs must be passed by position.
    """
    return _capture(fn, args, kwargs, mode=mode, outputs=outputs)


def _capture(fn: Callable[..., Any], args: tuple, kwargs: dict, **choices: Any) -> Captured:
    options = make_options(**choices)
    if not callable(fn):
        raise TypeError(f"capture() needs a callable, not a {type(fn).__name__}")
    return FlatCall(fn, args, kwargs).capture(options)


def make_options(mode: str = "replay", outputs: str = "fresh", **passes: bool) -> _livepool.CaptureOptions:
    """passes: in_place, fold_constants, order_for_memory, search_in_background; all are on unless set to False here."""
    if mode not in _livepool.Mode.__members__:
        raise InvalidInput(f"mode is 'replay' or 'graph', not {mode!r}")
    if outputs not in ("fresh", "arena"):
        raise InvalidInput(f"outputs is 'fresh' or 'arena', not {outputs!r}")
    options = _livepool.CaptureOptions()
    options.mode, options.outputs_in_arena = _livepool.Mode.__members__[mode], outputs == "arena"
    for name, on in passes.items():
        setattr(options, name, on)
    return options


class FlatCall:
    """A callable as a function from list of tensors to list of tensors: run for the capture, and when a replay is
    checked. Wrapped modules run as they are inside it."""

    def __init__(self, fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
                 forward_of: torch.nn.Module | None = None) -> None:
        """forward_of: the module whose forward `fn` is, and whose state is fn's. Raises CaptureRefused."""
        self.arguments, tensors = Structure.of(_call(args, kwargs), "call")
        self._objects = self.arguments.objects()
        for name, each in self._objects:
            check_unchangeable(each, name)
        self.state = State.of(fn if forward_of is None else forward_of, [each for _, each in self._objects],
                              forward_only=forward_of is not None)
        self.results: Structure
        self._fn = fn
        self._example: tuple | None = (args, kwargs, tensors)  # until the recorded run has begun

    def capture(self, options: _livepool.CaptureOptions | None = None) -> Captured:
        """Runs the callable, once, on the arguments that it was given, and makes the graph."""
        names = [name for name, other in self.arguments.leaves() if Structure.is_tensor(other)]
        with host_reads.refused():
            graph = _livepool.capture(self, self._example[2], self.state.tensors, names, options or make_options())
        for name, each in self.results.objects():
            if not any(each is other for _, other in self._objects):
                raise CaptureRefused(f"{name} is a {type(each).__name__}, which a replay cannot make anew; return tensors, numbers and "
                                     "containers and dataclasses of them")
        self._objects = []
        return Captured(graph, self)

    def let_go_of_objects(self) -> None:
        """From now on the objects among the arguments are not kept alive; who replays must hold them."""
        self._objects = []
        self.arguments.let_go_of_objects()
        self.results.let_go_of_objects()

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with disabled():
            if self._example is not None:
                example, self._example = self._example, None
                return self._record(*example)
            args, kwargs = self.arguments.rebuild(inputs)
            results, outputs = Structure.of(self._fn(*args, **kwargs), "result")
        difference = self.results.difference(results)
        if difference is not None:
            raise CheckFailed(f"{difference}, though the replay's conditions hold; capture it for this case too")
        return outputs

    def _record(self, args: tuple, kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        # The caller's own containers are passed, as the callable may keep them.
        self.results, outputs = Structure.of(self._fn(*args, **kwargs), "result")
        if not self.arguments.is_structure_of(_call(args, kwargs), tensors):
            raise CaptureRefused("the pass changes a container among its arguments; a replay would not")
        self.state.check_pass()
        return outputs


def as_call(arguments: list | dict) -> tuple[tuple, dict[str, Any]]:
    """Arguments and keywords of a call that are given in a list, or by name in a dict. Raises InvalidInput for anything else."""
    if isinstance(arguments, list):
        return tuple(arguments), {}
    if isinstance(arguments, dict):
        return (), dict(arguments)
    raise InvalidInput(f"the arguments to consume are in a list, or by name in a dict, not in a {type(arguments).__name__}")


def put_back(call: tuple[tuple, dict[str, Any]], arguments: list | dict) -> None:
    """Undoes as_call() and the emptying of `arguments`."""
    if isinstance(arguments, list):
        arguments.extend(call[0])
    else:
        arguments.update(call[1])


def _call(args: tuple, kwargs: dict[str, Any]) -> tuple:
    """A call as one nested object; the order of keywords does not matter."""
    return args, dict(sorted(kwargs.items()))
