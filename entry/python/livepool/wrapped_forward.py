"""What stands in the place of a wrapped module's `forward`."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from typing import Any

import torch

from livepool import _livepool
from livepool._livepool import CaptureDisturbed, CheckFailed, GuardFailed, ReplayMismatch
from livepool.capture import Captured, FlatCall, as_call
from livepool.disabled import is_disabled
from livepool.explain import Explanation, SignatureReport, describe_graph
from livepool.forward_stand_in import ForwardStandIn
from livepool.log import logger
from livepool.signature_cache import Signature, SignatureCache
from livepool.structure import RULES

_GIVE_UPS = 8  # one after the other, then the graph goes


class WrappedForward(ForwardStandIn):
    """Serves each call by a replay of its signature's graph, or runs the module as it is.

    The order of things in a call: calls that are never captured run as they are (_why_never); the key finds the
    signature; its graph is replayed; a call without a graph, or whose replay was given up, runs as it is, at the
    capture under the recorder. So the effects of a call happen once, whatever becomes of it.

    The module's graphs die with the module.
    """

    __slots__ = ("cache", "_plans", "_max_graphs", "_capture_after", "_options", "_replayed", "_as_is", "_said", "_lock")

    def __init__(self, module: torch.nn.Module, max_graphs: int, capture_after: int, options: _livepool.CaptureOptions) -> None:
        self.cache = SignatureCache(max_graphs, capture_after)
        super().__init__(module, lambda _, cache=self.cache: cache.clear())
        self._plans: _livepool.SavedPlans | None = None  # from a file
        self._max_graphs = max_graphs
        self._capture_after = capture_after
        self._options = options
        self._replayed = 0
        self._as_is: Counter[str] = Counter()
        self._said: set[Any] = set()
        self._lock = threading.Lock()  # for the three above

    def __deepcopy__(self, memo: dict) -> Any:
        """Copying a module asks for its __getstate__, and copying `module.forward` copies the module: both unwrapped.
        A copier that takes the attributes themselves gets a copy that is wrapped anew."""
        twin = memo.get(id(self.module))
        if twin is None:
            return copy.deepcopy(self.__wrapped__, memo)
        wrapped = WrappedForward(twin, self._max_graphs, self._capture_after, self._options)
        wrapped._plans = self._plans
        wrapped.own = copy.deepcopy(self.own, memo)
        return wrapped

    def explain(self) -> Explanation:
        with self._lock:
            replayed, as_is = self._replayed, dict(self._as_is)
        return Explanation(module=type(self.module).__name__, max_graphs=self._max_graphs, capture_after=self._capture_after,
                           signatures=[SignatureReport.of(each) for each in self.cache.signatures()], replayed=replayed, as_is=as_is,
                           plans_loaded=0 if self._plans is None else len(self._plans))

    def save_plans(self, path: str) -> int:
        plans = _livepool.SavedPlans() if self._plans is None else _livepool.SavedPlans(self._plans)
        for signature in self.cache.signatures():
            if (graph := signature.graph) is not None:
                graph.put_plan(plans, signature.key)
        plans.write(path, _named_tensors(self.module))
        return len(plans)

    def load_plans(self, path: str) -> int:
        self._plans = _livepool.SavedPlans.read(path, _named_tensors(self.module))
        return len(self._plans)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return self.__wrapped__(*args, **kwargs)
        module = self.module
        reason = _why_never(module)
        if reason is not None:
            return self._run_as_is(reason, args, kwargs)
        try:
            key, tensors, objects = RULES.key(args, kwargs)
        except Exception as error:  # not only CaptureRefused: looking at the arguments runs code of theirs
            reason = str(error)
        if reason is not None:
            self._say("runs as it is", reason, reason)
            return self._run_as_is(reason, args, kwargs)
        signature = self.cache.find(key)
        if signature is not None:
            graph = signature.graph
            if graph is not None:
                try:
                    result = graph.replay_flat(tensors)
                except Exception as error:
                    if not self._give_up(signature, graph, error):
                        raise
                    reason = f"a replay was given up ({type(error).__name__})"
                else:
                    self._count_replay(signature)
                    return result
        if reason is None or signature.graph is None:
            plan = None if self._plans is None else self._plans.find(key)
            signature, capture = self.cache.sight(key, objects, planned=plan is not None)
            if capture:
                return self._capture(signature, module, args, kwargs, plan)
            reason = reason or _why_no_graph(signature)
        return self._run_as_is(reason, args, kwargs)

    def consume(self, arguments: list | dict) -> Any:
        """A call with the arguments in a list, or by name in a dict, which is emptied. Where a replay that cannot be given up
        serves the call, a tensor that nobody else holds is freed after the last operator that uses it."""
        args, kwargs = as_call(arguments)
        signature, tensors = self._unconditional(args, kwargs)
        arguments.clear()
        if signature is not None and (graph := signature.graph) is not None:
            del args, kwargs
            try:
                result = graph.consume_flat(tensors)
            except ReplayMismatch:  # before the pass has begun
                args, kwargs = graph.call_with(tensors)
            else:
                self._count_replay(signature)
                return result
        return self(*args, **kwargs)

    def _unconditional(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Signature | None, list[torch.Tensor]]:
        """The signature of a call, if its replay cannot be given up, and the call's tensors."""
        if not torch.compiler.is_compiling() and _why_never(self.module) is None:
            try:
                key, tensors, _ = RULES.key(args, kwargs)
            except Exception:  # said by the call that follows
                return None, []
            signature = self.cache.find(key)
            if signature is not None and (graph := signature.graph) is not None and graph.unconditional():
                return signature, tensors
        return None, []

    def _count_replay(self, signature: Signature) -> None:
        signature.given_up_in_a_row = 0
        with self._lock:
            self._replayed += 1

    def _run_as_is(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        with self._lock:
            self._as_is[reason] += 1
        return self.__wrapped__(*args, **kwargs)

    def _capture(self, signature: Signature, module: torch.nn.Module, args: tuple, kwargs: dict[str, Any],
                 plan: _livepool.SavedPlan | None) -> Any:
        """Runs the module once, under the recorder, and returns its own result, whether that gives a graph or not.
        plan: in whose memory it runs."""
        if any(each.training for each in module.modules() if hasattr(each, "training")):
            self.cache.fail(signature)
            return self._run_as_is("training mode", args, kwargs)
        run = _Once(self)
        try:
            call = FlatCall(run, args, kwargs, forward_of=module)
            graph = call.capture(self._options if plan is None else self._options.with_plan(plan))
            call.let_go_of_objects()
        except BaseException as error:
            if run.error is not None or not isinstance(error, Exception):
                self.cache.fail(signature)
                raise
            self._not_captured(signature, error)
        else:
            dropped = self.cache.captured(signature, graph)
            report = graph.report()
            logger.info("%s(%s): %s%s", type(module).__name__, signature.key, describe_graph(report),
                        f"; {dropped} older graph dropped (max_graphs={self._max_graphs})" if dropped else "")
            if report["not_as_saved"]:
                self._say(f"plans anew for ({signature.key}), as the saved plan does not fit", report["not_as_saved"],
                          (str(signature.key), "plan"))
        return run.result() if run.begun else self._run_as_is(_why_no_graph(signature), args, kwargs)

    def _not_captured(self, signature: Signature, error: Exception) -> None:
        refused = isinstance(error, _livepool.Error) and not isinstance(error, CaptureDisturbed)
        if refused and self.cache.defer(signature):
            logger.info("%s waits for another call with (%s): %s", type(self.module).__name__, signature.key, error)
        elif refused:
            self.cache.refuse(signature, str(error))
            self._say(f"runs as it is for ({signature.key})", str(error), str(error))
        else:  # another attempt may succeed; out of memory, for one
            self.cache.fail(signature)
            self._say(f"runs as it is for ({signature.key}) for now", f"{type(error).__name__}: {error}", type(error).__name__)

    def _give_up(self, signature: Signature, graph: Captured, error: Exception) -> bool:
        """A replay has ended by `error`. True if everything is as it was before, so that the module can run."""
        what = f"for ({signature.key})"
        if isinstance(error, ReplayMismatch):
            logger.info("%s drops the graph %s: %s", type(self.module).__name__, what, error)
            self.cache.forget(signature, graph)
        elif isinstance(error, CheckFailed):
            self.cache.refuse(signature, str(error))
            self._say(f"runs as it is {what}", str(error), (what, CheckFailed))
        elif isinstance(error, GuardFailed):
            self._say(f"runs as it is {what}, where a value that it reads differs", str(error), (what, GuardFailed))
        elif graph.writes():  # what it had written before the error, eager would have written too
            return False
        else:
            self._say(f"gave up a replay {what}", f"{type(error).__name__}: {error}", (what, type(error)))
        if self.cache.gave_up(signature) >= _GIVE_UPS:
            self.cache.forget(signature, graph)
        return True

    def _say(self, what: str, why: str, reason: Any) -> None:
        """Warns, once for each `reason`, a plain value: it is kept, and must keep no signature alive."""
        with self._lock:
            new = reason not in self._said
            self._said.add(reason)
        if new:
            logger.warning("%s %s: %s", type(self.module).__name__, what, why)


class _Once:
    """The module's own forward; the result of its first run is kept until it is taken."""

    def __init__(self, wrapped: WrappedForward) -> None:
        self._wrapped = wrapped
        self.begun = False
        self.error: BaseException | None = None
        self._result: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.begun:
            return self._wrapped.__wrapped__(*args, **kwargs)
        self.begun = True
        try:
            result = self._wrapped.__wrapped__(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        self._result.append(result)
        return result

    def result(self) -> Any:
        return self._result.pop()


def _named_tensors(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _why_never(module: torch.nn.Module) -> str | None:
    """Why a call at this time, on this thread, is neither captured nor replayed, without a message; None if it may be."""
    if is_disabled():
        return "livepool.disabled(), or inside a capture or a check"
    if not _livepool.enabled():
        return "LIVEPOOL=0"
    if torch.is_grad_enabled():
        return "grad mode"
    if getattr(module, "training", False):
        return "training mode"
    if torch._C._get_tracing_state() is not None:
        return "torch.jit.trace"
    if torch._C._len_torch_function_stack() > 0:
        return "a TorchFunctionMode is active"
    return None


def _why_no_graph(signature: Signature) -> str:
    if signature.refusal is not None:
        return signature.refusal
    return "another thread captures it" if signature.being_captured else "not seen often enough yet"
