"""Whether two results are the same bits.

Floats are compared as integers of their width: -0.0 and 0.0 differ. A NaN equals any NaN, as the payload of a NaN is
not a result that anybody asked for.
"""

import math
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_flatten

_INTEGER_OF_WIDTH = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Difference:
    """`max_abs` is None where the results cannot be subtracted (other shapes, NaN against a number)."""

    equal: bool
    max_abs: float | None = 0.0
    reason: str = ""


def compare(expected, actual):
    """Compares all leaves of two structures; the first one that does not fit, or the largest difference."""
    leaves, structure = tree_flatten(expected)
    other_leaves, other_structure = tree_flatten(actual)
    if structure != other_structure:
        return Difference(False, None, "the results have other structures")
    return worst([_compare_leaf(a, b) for a, b in zip(leaves, other_leaves)])


def worst(differences):
    """Of several comparisons, the one to report: unequal before equal, not subtractable before any number."""
    def rank(difference):
        return (not difference.equal, math.inf if difference.max_abs is None else difference.max_abs)

    return max(differences, key=rank, default=Difference(True))


def _compare_leaf(expected, actual):
    if not isinstance(expected, torch.Tensor):
        same = type(expected) is type(actual) and expected == actual
        return Difference(True) if same else Difference(False, None, f"{expected!r} became {actual!r}")
    if not isinstance(actual, torch.Tensor):
        return Difference(False, None, f"a tensor became {type(actual).__name__}")
    for what in ("dtype", "device", "shape"):
        a, b = getattr(expected, what), getattr(actual, what)
        if a != b:
            return Difference(False, None, f"{what} {_short(a)} became {_short(b)}")
    return _compare_bits(_plain(expected), _plain(actual))


def _short(value):
    return tuple(value) if isinstance(value, torch.Size) else value


def _plain(tensor):
    """The elements as a flat contiguous tensor of real numbers."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.contiguous().reshape(-1)


def _compare_bits(expected, actual):
    integer = _INTEGER_OF_WIDTH[expected.element_size()]
    differ = expected.view(integer) != actual.view(integer)
    wide, other = expected[differ].double(), actual[differ].double()
    both_nan = wide.isnan() & other.isnan()
    wide, other = wide[~both_nan], other[~both_nan]
    if wide.numel() == 0:
        return Difference(True)
    largest = (wide - other).abs().max().item()
    count = f"{wide.numel()} of {expected.numel()} elements differ"
    if not math.isfinite(largest):
        return Difference(False, None, f"{count}, some by NaN or infinity")
    return Difference(False, largest, f"{count}, at most by {largest:.3g}")


def all_finite(result):
    return all(bool(leaf.isfinite().all()) for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor))
