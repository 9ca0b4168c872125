"""What a callable owns: its tensors, and the places in which they and its other values are watched at each replay."""

from __future__ import annotations

import functools
import logging
import types
from typing import Any

import torch
from torch.utils import _pytree as pytree

from livepool._livepool import CaptureRefused, ReplayMismatch, StateWatch
from livepool.structure import check_plain_tensor, same_leaf

_LEAF_TYPES = (type(None), bool, int, float, complex, str, bytes, type, torch.dtype, torch.device, types.ModuleType,
               types.BuiltinFunctionType, torch.Generator)
# Not looked into: they change by themselves, and what an operator does inside is not the callable's.
_OPAQUE_TYPES = (logging.Logger, torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._library.custom_ops.CustomOpDef)
_STATE_TYPES = (torch.Tensor, torch.nn.Module)
_MAX_DEPTH = 8
_BOOKKEEPING = frozenset(vars(torch.nn.Module()))  # the attributes that every module has
_WATCHED_BOOKKEEPING = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


class StandIn:
    """What livepool puts in the place of an attribute. A capture looks at `own`, which was there before, instead."""

    __slots__ = ("own",)


class State:
    """Everything reachable from a callable: parameters, buffers, submodules and all other attributes of its modules
    (in lists, tuples, dicts and plain objects too), closure cells, bound and default arguments. Global variables,
    class attributes, sets and objects without __dict__ are not looked into: a capture that reads a tensor there is
    refused as a hidden input."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self._watch = StateWatch(same_leaf)
        self._sizes: list[tuple[str, dict | list, int]] = []  # until the recorded pass is over: of all dicts and lists
        self._seen: dict[int, Any] = {}  # until then, too: id -> object, which keeps the id from being reused
        self._without_hooks_of: torch.nn.Module | None = None  # until then
        self._fastpath = torch.backends.mha.get_fastpath_enabled()

    @staticmethod
    def of(root: Any, arguments: list[Any], forward_only: bool = False) -> "State":
        """The state of a callable, and of the objects among its arguments (a static cache, for example).
        forward_only: `root` is a module of which forward is the callable, so that its own hooks run outside."""
        state = State()
        state._without_hooks_of = root if forward_only else None
        state._visit(root, "", 0)
        for i, argument in enumerate(arguments):
            state._visit(argument, f"argument object {i}", 0)
        return state

    def check(self) -> None:
        """Raises ReplayMismatch, naming it, if anything in the state was replaced, added or removed: a tensor, a
        submodule, a hook, the training flag, a number (unless by an equal one), a function, an object. The bytes of
        tensors may differ; so may what is in objects that are not looked into."""
        change = self._watch.change()
        if change is not None:
            raise ReplayMismatch(f"{change} since the capture; capture again")
        fastpath = torch.backends.mha.get_fastpath_enabled()
        if fastpath != self._fastpath:
            raise ReplayMismatch(f"torch.backends.mha.get_fastpath_enabled() is {fastpath}, and was {self._fastpath} at the capture; "
                                 "capture it for this case too")

    def check_pass(self) -> None:
        """After the recorded pass: raises CaptureRefused if the pass has changed what it owns in another way than
        through the bytes of tensors, as a replay would not do so. A list without tensors that has got more entries is
        let pass, and not watched: it looks like a log, and such effects happen once, at the capture. A dict that has
        got more (cached values, for example) is watched as it is now."""
        change = self._watch.change()
        for called, container, size in self._sizes:
            grown = len(container) > size
            entries = list(container.values())[size:] if isinstance(container, dict) else container
            if len(container) < size or grown and any(isinstance(leaf, _STATE_TYPES) for leaf in pytree.tree_leaves(entries)):
                change = change or f"{called} has {len(container)} entries instead of {size}"
            elif grown and isinstance(container, list):
                self._watch.forget(container)
            else:
                self._watch.add_size(container, called)
        self._sizes, self._seen, self._without_hooks_of = [], {}, None
        if change is not None:
            raise CaptureRefused(f"the pass replaces, adds or removes what it owns: {change}; a replay would not. If the first run "
                                 "only sets it up, run the callable once before the capture")

    def _visit(self, thing: Any, name: str, depth: int) -> None:
        if thing is torch._C._to_dlpack:  # host_reads replaces it in modules only
            raise CaptureRefused(f"'{name}' is torch.to_dlpack, which reads a tensor's bytes unseen when it is called in this way")
        if isinstance(thing, (*_LEAF_TYPES, *_OPAQUE_TYPES)) or depth > _MAX_DEPTH:
            return
        if isinstance(thing, StandIn):
            return self._visit(thing.own, name, depth)
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
            self._visit_dict(thing, f"state '{name}'", [(key, f"{name}[{key!r}]") for key in thing], depth)
        elif isinstance(thing, (list, tuple)):
            if isinstance(thing, list):
                self._sizes.append((f"state '{name}'", thing, len(thing)))
            for i, value in enumerate(thing):
                if isinstance(thing, list):
                    self._watch.add_place(thing, i, f"state '{name}[{i}]'")
                self._visit(value, f"{name}[{i}]", depth + 1)
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
            attributes = [(key, f"{name}.{key}" if name else key) for key in vars(thing)]
            self._visit_dict(vars(thing), f"dict of attributes of '{name or type(thing).__name__}'", attributes, depth)

    def _visit_dict(self, entries: dict, called: str, items: list[tuple[Any, str]], depth: int) -> None:
        """items: the keys to watch and look at, and the names of what is there."""
        self._sizes.append((called, entries, len(entries)))
        for key, name in items:
            self._watch.add_place(entries, key, f"state '{name}'")
            self._visit(entries[key], name, depth + 1)

    def _visit_function(self, function: types.FunctionType, name: str, depth: int) -> None:
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # empty: the variable has no value yet
                continue
            self._watch.add_place(cell, None, f"closure variable '{variable}'")
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
        prefix = name + "." if name else ""
        self._watch.add_place(module.__dict__, "training", f"the training flag {called}")
        for entries in _WATCHED_BOOKKEEPING:
            if module is self._without_hooks_of and "hooks" in entries:
                continue
            content = module.__dict__[entries]
            entry = f"{entries} {called}, entry " if "hooks" in entries else prefix
            self._visit_dict(content, f"{entries} {called}", [(key, f"{entry}{key}") for key in content], 0)
        for entries in ("_global_forward_hooks", "_global_forward_pre_hooks"):
            self._visit(getattr(torch.nn.modules.module, entries), entries, 0)
        own = [(key, prefix + key) for key in module.__dict__ if key not in _BOOKKEEPING]
        self._visit_dict(module.__dict__, f"dict of attributes {called}", own, 0)  # a new `forward`, for one

    def _visit_constants(self, graph: torch._C.Graph, name: str) -> None:
        for i, node in enumerate(graph.findAllNodes("prim::Constant")):
            if node.hasAttribute("value") and node.kindOf("value") == "t":
                self._visit(node.t("value"), f"constant {i} of {name}", 0)


def _refuse_fusers(name: str) -> None:
    if torch._C._jit_texpr_fuser_enabled() and (torch._C._jit_can_fuse_on_cpu() or torch._C._jit_can_fuse_on_gpu()):
        raise CaptureRefused(f"TorchScript module '{name}' may be fused into kernels that the dispatcher does not see; call "
                             "torch._C._jit_set_texpr_fuser_enabled(False) before its first run")
