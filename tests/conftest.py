"""What the Python tests share: GPU tests where there is no GPU, and the fixtures of capture and replay.

`livepool` gives the package, installed for the CPU, or skips; `check` is the one question that most tests ask:
does a replay give eager's result, byte for byte, on bytes that the capture has not seen?
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def _import_poisoned():
    """The compiled module, or why there is none. It reads the environment when it is imported, so this comes before the
    tests, which import it as well; their child processes are not poisoned."""
    before = os.environ.get("LIVEPOOL_FILL")
    os.environ["LIVEPOOL_FILL"] = "nan"
    try:
        import livepool._livepool as module
    except ImportError as error:
        return error
    finally:
        os.environ.pop("LIVEPOOL_FILL")
        if before is not None:
            os.environ["LIVEPOOL_FILL"] = before
    return module


_MODULE = _import_poisoned()


def pytest_collection_modifyitems(items):
    """A test marked `gpu` is skipped, with its reason, where torch sees no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; scripts/gpu-test runs it"))


@pytest.fixture(scope="session")
def livepool():
    """The package, installed for the CPU. Slots are poisoned at their death: a read after it gives NaN."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("numpy", reason="numpy is not installed, and a capture watches reads through it")
    if isinstance(_MODULE, ImportError):
        pytest.skip(f"livepool's compiled module cannot be imported (build it with -DLIVEPOOL_WITH_TORCH=ON): {_MODULE}")
    import livepool

    torch.set_num_threads(1)
    livepool.install("cpu")
    return livepool


@pytest.fixture
def unpoisoned(livepool):
    """unpoisoned(function, device): calls function(livepool) in a process whose slots are not poisoned, with livepool
    installed for the device."""
    def run(function: Callable, device: str = "cpu") -> None:
        file = Path(inspect.getfile(function))
        program = (
            f"import sys; sys.path[:0] = [{str(file.parent)!r}]\n"
            f"import torch, livepool; from {file.stem} import {function.__name__} as function\n"
            f"livepool.install({device!r})\n"
            "with torch.no_grad(): function(livepool)"
        )
        package = Path(livepool.__file__).parents[1]
        environment = {key: value for key, value in os.environ.items() if key != "LIVEPOOL_FILL"}
        environment["PYTHONPATH"] = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
        child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300,
                               check=False)
        assert child.returncode == 0, child.stdout + child.stderr

    return run


@pytest.fixture(autouse=True)
def _no_grad(request):
    """Inference mode off and grad mode off, for the tests that capture."""
    if "livepool" not in request.fixturenames:
        yield
        return
    import torch

    with torch.no_grad():
        yield


def bytes_of(tensor) -> bytes:
    """The elements as bytes, without lazy conjugation or negation; NaN keeps its bits."""
    import torch

    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()
    return plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def assert_same(got: Any, want: Any, what: str = "result") -> None:
    """Equal structure, and for tensors equal dtype, sizes, strides and bytes."""
    import torch
    from torch.utils import _pytree as pytree

    got_leaves, got_spec = pytree.tree_flatten(got)
    want_leaves, want_spec = pytree.tree_flatten(want)
    assert got_spec == want_spec, what
    for i, (a, b) in enumerate(zip(got_leaves, want_leaves)):
        name = f"{what}, leaf {i}"
        assert type(a) is type(b), name
        if dataclasses.is_dataclass(b):
            assert_same(vars(a), vars(b), name)
            continue
        if not isinstance(b, torch.Tensor):
            assert a == b or (a != a and b != b), name
            continue
        assert (a.dtype, a.shape, a.stride(), a.device) == (b.dtype, b.shape, b.stride(), b.device), name
        assert (a.is_conj(), a.is_neg()) == (b.is_conj(), b.is_neg()), name
        assert bytes_of(a) == bytes_of(b), f"{name}: {a} is not {b}"


@pytest.fixture
def same() -> Callable[..., None]:
    return assert_same


@pytest.fixture
def check(livepool):
    """check(fn, make_inputs): captures fn on make_inputs(0), replays it on make_inputs(1) and (2) in turns, and
    compares results and arguments with eager's. The first of these replays is compared with eager by livepool
    itself, too (unless the arguments have no bytes), and gives back eager's tensors; the others give the replay's own.

    hits: allocations must come from the plan. misses: may happen. options: of the capture. Returns the graph.
    """
    from livepool.capture import _capture

    def run(fn, make_inputs, hits: bool = True, misses: bool = False, **options):
        import torch

        torch.manual_seed(0)
        graph = _capture(fn, make_inputs(0), {}, **options)
        for seed in (1, 2, 1):
            eager_inputs, replay_inputs = make_inputs(seed), make_inputs(seed)
            torch.manual_seed(seed)
            want = fn(*eager_inputs)
            torch.manual_seed(seed)
            got = graph.replay(*replay_inputs)
            assert_same(got, want, f"result for input {seed}")
            assert_same(replay_inputs, eager_inputs, f"arguments after input {seed}")
        report = graph.report()
        has_bytes = any(isinstance(each, torch.Tensor) and each.numel() for each in make_inputs(0))
        assert report["checked"] or not has_bytes
        if hits:
            assert report["hits"] > 0
        if not misses:
            assert report["misses"] == 0
        return graph

    return run


@pytest.fixture
def refused(livepool):
    """refused(fn, *args, match=…): the capture must be refused, with that in the message, and livepool must
    work afterwards."""

    def run(fn, *args, match: str, **kwargs):
        import torch

        with pytest.raises(livepool.CaptureRefused, match=match):
            livepool.capture(fn, *args, **kwargs)
        graph = livepool.capture(lambda x: (x + 1) * 2, torch.zeros(4))
        assert_same(graph.replay(torch.ones(4)), torch.full((4,), 4.0))

    return run


def normal(*shapes, dtype=None):
    """A make_inputs for check: normally distributed tensors of these shapes."""
    import torch

    def make(seed: int) -> tuple:
        generator = torch.Generator().manual_seed(seed)
        return tuple(torch.randn(shape, generator=generator).to(dtype or torch.float32) for shape in shapes)

    return make


@pytest.fixture(name="normal")
def _normal():
    return normal


@pytest.fixture
def wrapped(livepool):
    """wrapped(module, **options): a twin of `module`, wrapped; captured at the first call unless told otherwise. `module` stays
    what it is, as the reference."""
    import copy

    def wrap(module, capture_after: int = 1, **options):
        return livepool.wrap(copy.deepcopy(module), capture_after=capture_after, **options)

    return wrap
