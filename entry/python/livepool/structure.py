"""Nested arguments and results as flat lists: what is a tensor goes into the graph, the rest is compared."""

from __future__ import annotations

import dataclasses
import enum
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from livepool._livepool import CallRules, CaptureRefused, ReplayMismatch

# Compared by value. Everything else that is no tensor is compared by identity.
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout,
              torch.memory_format, enum.Enum)
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def is_constant(leaf: Any) -> bool:
    return isinstance(leaf, _CONSTANTS)


def check_unchangeable(leaf: Any, name: str) -> None:
    """Refuses an argument which is compared by identity at a replay though its content may change: numpy arrays,
    bytearray, memoryview, array.array, …"""
    if is_constant(leaf):
        return
    try:
        memoryview(leaf)
    except (TypeError, ValueError, BufferError):
        if not hasattr(type(leaf), "__array__"):
            return
    raise CaptureRefused(f"{name} is a {type(leaf).__name__}, whose content may change without a replay seeing it; pass a tensor, or a "
                         "Python number")


def check_plain_tensor(tensor: torch.Tensor, what: str) -> None:
    """Refuses tensor subclasses: an operator of the graph would return a plain tensor in their place."""
    if type(tensor) not in _PLAIN_TENSORS:
        raise CaptureRefused(f"{what} is a {type(tensor).__name__}, a tensor subclass")


def dataclass_fields(leaf: Any) -> tuple[str, ...] | None:
    """The names of the fields of a dataclass's instance that holds nothing else: it is taken apart and made anew as
    a tuple is. None for every other leaf."""
    if not dataclasses.is_dataclass(leaf) or isinstance(leaf, (type, torch.nn.Module)):
        return None
    names = tuple(field.name for field in dataclasses.fields(leaf))
    return None if set(getattr(leaf, "__dict__", ())) - set(names) or not all(hasattr(leaf, name) for name in names) else names


@dataclass
class Structure:
    """Where the tensors sit in a nested object, and what everything else was."""

    what: str
    spec: pytree.TreeSpec
    names: list[str]  # of every leaf, e.g. "kwargs['input_ids']"
    others: list[Any]  # for every leaf: the object, or _TENSOR, a _Fields or an _Object in its place

    @staticmethod
    def of(tree: Any, what: str) -> tuple["Structure", list[torch.Tensor]]:
        """The structure of `tree` and its tensors. `what` begins the names of its leaves; "call" says that `tree` is
        (args, kwargs)."""
        paths, spec = pytree.tree_flatten_with_path(tree)
        names = [_name(what, pytree.keystr(path)) for path, _ in paths]
        tensors, others = [], []
        for name, (_, leaf) in zip(names, paths):
            if isinstance(leaf, torch.Tensor):
                check_plain_tensor(leaf, name)
                tensors.append(leaf)
                others.append(_TENSOR)
            elif (fields := dataclass_fields(leaf)) is not None:
                inner, inner_tensors = Structure.of(_values(leaf, fields), name)
                tensors += inner_tensors
                others.append(_Fields(type(leaf), fields, inner))
            else:
                others.append(leaf)
        return Structure(what, spec, names, others), tensors

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Names and entries of `others`, those of dataclasses included."""
        for name, other in zip(self.names, self.others):
            if isinstance(other, _Fields):
                yield from other.inner.leaves()
            else:
                yield name, other

    def tensors_of(self, tree: Any) -> list[torch.Tensor]:
        """The tensors of another call of this structure. Raises ReplayMismatch, naming the leaf that differs."""
        leaves, spec = pytree.tree_flatten(tree)
        if spec != self.spec:
            how = self._other_nesting(*tree) if self.what == "call" else f"{self.what} is nested in another way than at the capture"
            raise ReplayMismatch(f"{how}; capture it for this case too")
        tensors = []
        for name, captured, leaf in zip(self.names, self.others, leaves):
            if isinstance(leaf, torch.Tensor) and captured is _TENSOR:
                if type(leaf) not in _PLAIN_TENSORS:
                    raise ReplayMismatch(f"{name} is a {type(leaf).__name__}, a tensor subclass, and was none at the capture")
                tensors.append(leaf)
            elif isinstance(captured, _Fields) and captured.fit(leaf):
                tensors += captured.inner.tensors_of(_values(leaf, captured.names))
            elif not same_leaf(captured, leaf):
                raise ReplayMismatch(f"{name} is {_describe(leaf)}, captured with {_describe(captured)}; capture it for this case too")
        return tensors

    def _other_nesting(self, args: tuple, kwargs: dict[str, Any]) -> str:
        captured_args, captured_kwargs = pytree.tree_unflatten(self.others, self.spec)
        if len(args) != len(captured_args):
            count = len(args)
            return f"got {count} positional argument{'' if count == 1 else 's'}, captured with {len(captured_args)}"
        if list(kwargs) != list(captured_kwargs):
            return f"got keyword arguments {list(kwargs)}, captured with {list(captured_kwargs)}"
        pairs = [(f"args[{i}]", *pair) for i, pair in enumerate(zip(args, captured_args))]
        pairs += [(f"kwargs[{key!r}]", kwargs[key], captured_kwargs[key]) for key in kwargs]
        for name, now, captured in pairs:
            if pytree.tree_structure(now) != pytree.tree_structure(captured):
                return f"{name} is nested in another way than at the capture"
        return "the arguments are nested in another way than at the capture"

    def is_structure_of(self, tree: Any, tensors: list[torch.Tensor]) -> bool:
        """True if `tree` still has this structure and holds `tensors` themselves."""
        return self._holds(tree, iter(tensors))

    def _holds(self, tree: Any, rest: Iterator[torch.Tensor]) -> bool:
        def same(captured: Any, leaf: Any) -> bool:
            if isinstance(captured, _Fields):
                return captured.fit(leaf) and captured.inner._holds(_values(leaf, captured.names), rest)
            return leaf is (next(rest) if captured is _TENSOR else captured)

        leaves, spec = pytree.tree_flatten(tree)
        return spec == self.spec and all(map(same, self.others, leaves))

    def difference(self, now: "Structure") -> str | None:
        """What is not the same in `now`, apart from the tensors; None if nothing is."""
        if now.spec != self.spec:
            return f"the {self.what} is nested in another way than at the capture"
        for name, captured, leaf in zip(self.names, self.others, now.others):
            if isinstance(captured, _Fields) and isinstance(leaf, _Fields) and captured.cls is leaf.cls:
                inner = captured.inner.difference(leaf.inner)
                if inner is not None:
                    return inner
            elif not same_leaf(captured, leaf):
                return f"{name} is {_describe(leaf)}, and was {_describe(captured)} at the capture"
        return None

    @staticmethod
    def is_tensor(other: Any) -> bool:
        """True for an entry of `others` that stands for a tensor."""
        return other is _TENSOR

    def objects(self) -> list[tuple[str, Any]]:
        """The leaves that are neither tensors nor constants, with their names."""
        return [(name, other) for name, other in self.leaves() if other is not _TENSOR and not is_constant(other)]

    def let_go_of_objects(self) -> None:
        """From now on the objects (see above) are not kept alive."""
        for i, other in enumerate(self.others):
            if isinstance(other, _Fields):
                other.inner.let_go_of_objects()
            elif other is not _TENSOR and not is_constant(other):
                self.others[i] = _Object.of(other)

    def rebuild(self, tensors: list[torch.Tensor]) -> Any:
        """The object with `tensors` in their places."""
        if len(self.others) == 1 and self.others[0] is _TENSOR and self.spec.is_leaf():
            return tensors[0]
        return self._rebuild(iter(tensors))

    def _rebuild(self, rest: Iterator[torch.Tensor]) -> Any:
        def leaf(other: Any) -> Any:
            if other is _TENSOR:
                return next(rest)
            return other.make(rest) if isinstance(other, (_Fields, _Object)) else other

        return pytree.tree_unflatten([leaf(other) for other in self.others], self.spec)


class _Tensor:
    def __repr__(self) -> str:
        return "a tensor"


@dataclass
class _Fields:
    """The place of a dataclass's instance."""

    cls: type
    names: tuple[str, ...]
    inner: Structure  # of the dict of its fields

    def fit(self, leaf: Any) -> bool:
        return type(leaf) is self.cls and dataclass_fields(leaf) == self.names

    def make(self, rest: Iterator[torch.Tensor]) -> Any:
        made = object.__new__(self.cls)  # neither __init__ nor __post_init__ runs: the fields are what they are
        for name, value in self.inner._rebuild(rest).items():
            object.__setattr__(made, name, value)
        return made


@dataclass(frozen=True)
class _Object:
    """The place of an object that is not kept alive. Whoever asks for it holds it."""

    get: Any

    @staticmethod
    def of(thing: Any) -> Any:
        try:
            return _Object(weakref.ref(thing))
        except TypeError:
            return thing

    def make(self, rest: Iterator[torch.Tensor]) -> Any:
        return self.get()


def _values(leaf: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(leaf, name) for name in names}


_TENSOR = _Tensor()


def same_leaf(captured: Any, leaf: Any) -> bool:
    """The same object, or a constant of the same type and value."""
    if captured is leaf or isinstance(captured, _Object) and captured.get() is (leaf.get() if isinstance(leaf, _Object) else leaf):
        return True
    if not is_constant(captured) or type(captured) is not type(leaf):
        return False
    if isinstance(captured, (float, complex)):
        return repr(captured) == repr(leaf)  # NaN is the same as NaN, and -0.0 is not 0.0
    return captured == leaf


def _name(what: str, path: str) -> str:
    """For a call "[0][1]" is the second positional argument, "[1]['mask']" the one named mask."""
    if what != "call":
        return what + path
    return ("args" if path.startswith("[0]") else "kwargs") + path[3:]


def _describe(leaf: Any) -> str:
    if isinstance(leaf, (torch.Tensor, _Tensor)):
        return "a tensor"
    if isinstance(leaf, _Fields):
        return f"a {leaf.cls.__name__}"
    return repr(leaf) if is_constant(leaf) else f"another object of type {type(leaf).__name__}"


# How the compiled half looks at the arguments of a call (entry/python/call_key.h).
RULES = CallRules(nodes=pytree.SUPPORTED_NODES, is_constant=is_constant, same_leaf=same_leaf,
                  is_plain=lambda tensor: type(tensor) in _PLAIN_TENSORS, dataclass_fields=dataclass_fields)
