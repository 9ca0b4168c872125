"""The tensors that a callable owns: found at the capture, and watched for replacement at each replay."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from livepool._livepool import CaptureRefused, ReplayMismatch, StateWatch
from livepool.structure import check_plain_tensor

_LEAF_TYPES = (type(None), bool, int, float, complex, str, bytes, type, torch.dtype, torch.device, types.ModuleType,
               types.BuiltinFunctionType, torch.Generator)
_MAX_DEPTH = 8


class State:
    """Tensors reachable from a callable: parameters, buffers and other tensors in the attributes of its modules
    (in lists, dicts and plain objects too), closure cells, bound and default arguments. Global variables are
    not state: a capture that reads one is refused as a hidden input."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self._watch = StateWatch()
        self._lists: list[tuple[str, list, int]] = []  # lists of state: name, list, length
        self._values: list[tuple[str, Any, Any, Any]] = []  # everything found: name, container, key, value
        self._sizes: list[tuple[str, Any, int]] = []  # of the containers found
        self._seen: dict[int, Any] = {}  # id -> object, which keeps the id from being reused

    @staticmethod
    def of(root: Any, arguments: list[Any]) -> "State":
        """The state of a callable, and of the objects among its arguments (a static cache, for example)."""
        state = State()
        state._visit(root, "", 0)
        for i, argument in enumerate(arguments):
            state._visit(argument, f"argument object {i}", 0)
        return state

    def check(self) -> None:
        """Raises ReplayMismatch, naming it, if a tensor or a submodule was replaced or added, or a module was
        changed to training mode or got hooks."""
        self._watch.check()
        for name, entries, length in self._lists:
            if len(entries) != length:
                raise ReplayMismatch(f"state '{name}' has {len(entries)} entries, and had {length} at the capture; capture again")

    def check_pass(self) -> None:
        """After the recorded pass: raises CaptureRefused if the pass has changed what it owns in another way than
        through the bytes of tensors, as a replay would not do so. A list that has only got entries which are no
        tensors is let pass: it looks like a log, and such effects happen once, at the capture."""
        advice = "; a replay would not. If the first run only sets it up, run the callable once before the capture"
        for name, container, key, value in self._values:
            now = _look(container, key)
            if now is not value and not (isinstance(value, _LEAF_TYPES) and type(now) is type(value) and now == value):
                raise CaptureRefused(f"the pass replaces '{name}'{advice}")
        for name, container, size in self._sizes:
            values = container.values() if isinstance(container, dict) else container
            made = any(isinstance(leaf, torch.Tensor) and id(leaf) not in self._seen for leaf in pytree.tree_leaves(list(values)))
            if len(container) < size or made:
                raise CaptureRefused(f"the pass adds to or removes from '{name}'{advice}")
        self._values, self._sizes = [], []

    def _visit(self, thing: Any, name: str, depth: int) -> None:
        if isinstance(thing, _LEAF_TYPES) or depth > _MAX_DEPTH:
            return
        if isinstance(thing, torch.Tensor):
            if id(thing) not in self._seen:
                check_plain_tensor(thing, f"state '{name}'")
                self._seen[id(thing)] = thing
                self.tensors.append((name, thing))
            return
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        if isinstance(thing, torch.nn.Module):
            self._visit_module(thing, name)
        elif isinstance(thing, dict):
            if _holds_state(thing.values()):
                self._watch.add_size(thing, f"state '{name}'")
            self._visit_items(thing, name, [(key, f"{name}[{key!r}]") for key in thing], depth)
        elif isinstance(thing, (list, tuple)):
            if isinstance(thing, list) and _holds_state(thing):
                self._lists.append((name, thing, len(thing)))
            self._visit_items(thing, name, [(i, f"{name}[{i}]") for i in range(len(thing))], depth)
        elif isinstance(thing, functools.partial):
            self._visit(thing.func, name, depth + 1)
            self._visit(thing.args, f"{name}.args", depth + 1)
            self._visit(thing.keywords, f"{name}.keywords", depth + 1)
        elif isinstance(thing, types.MethodType):
            self._visit(thing.__self__, name, depth + 1)
            self._visit(thing.__func__, name, depth + 1)
        elif isinstance(thing, torch.jit.ScriptFunction):
            _refuse_fusers(name)
            self._visit_constants(thing.inlined_graph, name or thing.name)
        elif isinstance(thing, types.FunctionType):
            self._visit_function(thing, name, depth)
        elif hasattr(thing, "__dict__"):
            self._visit_items(vars(thing), name, [(key, f"{name}.{key}" if name else key) for key in vars(thing)], depth)

    def _visit_items(self, container: Any, called: str, items: list[tuple[Any, str]], depth: int, watch_all: bool = False) -> None:
        self._sizes.append((called, container, len(container)))
        for key, name in items:
            value = container[key]
            self._values.append((name, container, key, value))
            if watch_all or isinstance(value, (torch.Tensor, torch.nn.Module)):
                self._watch.add_place(container, key, value, f"state '{name}'")
            self._visit(value, name, depth + 1)

    def _visit_function(self, function: types.FunctionType, name: str, depth: int) -> None:
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # empty: the variable has no value yet
                continue
            self._values.append((variable, cell, None, value))
            if isinstance(value, (torch.Tensor, torch.nn.Module)):
                self._watch.add_place(cell, None, value, f"closure variable '{variable}'")
            self._visit(value, variable, depth + 1)
        self._visit(function.__defaults__, f"{name}.__defaults__", depth + 1)
        self._visit(function.__kwdefaults__, f"{name}.__kwdefaults__", depth + 1)
        if hasattr(function, "__wrapped__"):
            self._visit(function.__wrapped__, name, depth + 1)

    def _visit_module(self, module: torch.nn.Module, name: str) -> None:
        if getattr(module, "training", False):  # a frozen TorchScript module has no such flag
            raise CaptureRefused(f"module '{name or type(module).__name__}' is in training mode; call .eval() first")
        if isinstance(module, torch.jit.ScriptModule):
            _refuse_fusers(name)
            for key, value in [*module.named_parameters(), *module.named_buffers()]:
                self._visit(value, key, 0)
            self._visit_constants(module.inlined_graph, name or "TorchScript module")
            return
        called = f"of module '{name or type(module).__name__}'"
        self._watch.add_place(module.__dict__, "training", False, f"the training flag {called}")
        for entries in ("_forward_hooks", "_forward_pre_hooks", "_modules"):
            self._watch_entries(module.__dict__[entries], f"{entries} {called}")
        for entries in ("_global_forward_hooks", "_global_forward_pre_hooks"):
            if id(getattr(torch.nn.modules.module, entries)) not in self._seen:
                self._seen[id(getattr(torch.nn.modules.module, entries))] = entries
                self._watch_entries(getattr(torch.nn.modules.module, entries), f"{entries} of all modules")
        self._watch.add_size(module.__dict__, f"attributes {called}")  # a new `forward`, for one
        prefix = name + "." if name else ""
        for entries in ("_parameters", "_buffers", "_modules"):
            attributes = module.__dict__[entries]
            # None is watched too: a bias may come later.
            self._visit_items(attributes, prefix + entries, [(key, prefix + key) for key in attributes], 0, watch_all=True)
        skipped = ("_parameters", "_buffers", "_modules")
        self._visit_items(module.__dict__, name or type(module).__name__,
                          [(key, prefix + key) for key in module.__dict__ if key not in skipped], 0)


    def _watch_entries(self, entries: dict, what: str) -> None:
        self._watch.add_size(entries, what)
        for key, value in entries.items():
            self._watch.add_place(entries, key, value, f"entry {key!r} of {what}")

    def _visit_constants(self, graph: torch._C.Graph, name: str) -> None:
        for i, node in enumerate(graph.findAllNodes("prim::Constant")):
            if node.hasAttribute("value") and node.kindOf("value") == "t":
                self._visit(node.t("value"), f"constant {i} of {name}", 0)


def _holds_state(values: Iterable[Any]) -> bool:
    return any(isinstance(value, (torch.Tensor, torch.nn.Module)) for value in values)


def _look(container: Any, key: Any) -> Any:
    try:
        return container.cell_contents if isinstance(container, types.CellType) else container[key]
    except (KeyError, IndexError, ValueError):
        return None


def _refuse_fusers(name: str) -> None:
    if torch._C._jit_texpr_fuser_enabled() and (torch._C._jit_can_fuse_on_cpu() or torch._C._jit_can_fuse_on_gpu()):
        raise CaptureRefused(f"TorchScript module '{name}' may be fused into kernels that the dispatcher does not see; call "
                             "torch._C._jit_set_texpr_fuser_enabled(False) before its first run")
