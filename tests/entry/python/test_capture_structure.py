"""Arguments and results: nested, named, compared."""

import array
import collections
import dataclasses
import enum
import types

import numpy as np
import pytest
import torch

X = torch.arange(6.0)
Y = X * 2 - 3


def _both(livepool, same, fn, *args, **kwargs):
    graph = livepool.capture(fn, X, *args, **kwargs)
    for x in (Y, Y + 1, X):
        same(graph.replay(x, *args, **kwargs), fn(x, *args, **kwargs))
    return graph


Pair = collections.namedtuple("Pair", "first second")

RESULTS = {
    "tensor": lambda x: x * 2,
    "tuple": lambda x: (x * 2, x + 1),
    "list": lambda x: [x * 2, [x + 1]],
    "dict": lambda x: {"a": x * 2, "b": {"c": x + 1}},
    "ordered dict": lambda x: collections.OrderedDict(b=x * 2, a=x + 1),
    "namedtuple": lambda x: Pair(x * 2, x + 1),
    "torch's own tuple": lambda x: (x * 2).max(0),
    "None inside": lambda x: (x * 2, None, {"none": None}),
    "None alone": lambda x: None,
    "constants": lambda x: (x * 2, 3, "four", 5.0, True, torch.float16, float("nan")),
    "empty": lambda x: (),
    "no tensor": lambda x: 3,
}


def test_keywords(livepool, same):
    def fn(x, *, scale, shift=1.0, mask=None):
        return x * scale + shift + (0 if mask is None else mask)

    graph = _both(livepool, same, fn, scale=torch.tensor(2.0), mask=X + 5)
    same(graph.replay(Y, mask=Y + 7, scale=torch.tensor(3.0)), Y * 3 + 1.0 + (Y + 7))  # in another order


def test_nested_arguments(livepool, same):
    def fn(x, nested):
        return nested["a"][0] * 2 + nested["a"][1] + x

    _both(livepool, same, fn, {"a": [X + 5, 3], "b": (None, "text")})


def test_model_output(livepool, same):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from transformers.modeling_outputs import BaseModelOutput

    graph = livepool.capture(lambda x: BaseModelOutput(last_hidden_state=x * 2, hidden_states=(x + 1, x)), X)
    assert transformers is not None
    for x in (Y, Y + 1):
        got = graph.replay(x)
        assert isinstance(got, BaseModelOutput) and got.attentions is None
        same(got.last_hidden_state, x * 2)
        same(got.hidden_states, (x + 1, x))


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    more: tuple | None = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    inner: Output
    name: str


RESULTS["dataclass"] = lambda x: Output(x * 2, (x + 1, {"a": x}))
RESULTS["nested frozen dataclass"] = lambda x: [Frozen(Output(x * 2), "name"), x + 1]


@pytest.mark.parametrize("fn", RESULTS.values(), ids=RESULTS)
def test_results(livepool, same, fn):
    _both(livepool, same, fn)


def test_dataclass_arguments(livepool, same):
    def fn(batch):
        return batch.inner.logits * 2 + batch.inner.more[0]

    graph = livepool.capture(fn, Frozen(Output(X, (X + 1,)), "name"))
    same(graph.replay(Frozen(Output(Y, (Y + 3,)), "name")), Y * 2 + Y + 3)
    with pytest.raises(livepool.ReplayMismatch, match="name"):
        graph.replay(Frozen(Output(Y, (Y + 3,)), "other"))
    with pytest.raises(livepool.ReplayMismatch, match="nested in another way"):
        graph.replay(Frozen(Output(Y, (Y, Y)), "name"))
    with pytest.raises(livepool.ReplayMismatch, match="Frozen"):
        graph.replay(3)


def test_dataclass_that_the_pass_changes_is_refused(refused):
    def fn(batch):
        batch.logits = batch.logits * 2
        return batch.logits + 1

    refused(fn, Output(X), match="changes a container among its arguments")


def test_object_is_refused_with_a_reason(refused):
    class Plain:
        pass

    refused(lambda x: [x * 2, Plain()], X, match=r"result\[1\] is a Plain, which a replay cannot make anew")


def test_object_among_the_arguments_may_be_returned(livepool, same):
    cache = types.SimpleNamespace(k=torch.zeros(6))

    def fn(x, cache):
        cache.k.copy_(x)
        return x * 2, cache

    graph = livepool.capture(fn, X, cache)
    for x in (Y, Y + 1):
        got, returned = graph.replay(x, cache)
        same(got, x * 2)
        assert returned is cache
        same(cache.k, x)


class Mode(enum.Enum):
    PLUS = 1
    MINUS = 2


class TestMismatch:
    def fn(self, x, factor=2, name="a", flag=True, kind=Mode.PLUS, dtype=torch.float32, **more):
        return (x * factor + (1 if flag else 0)).to(dtype) + sum(more.values())

    @pytest.mark.parametrize("name, value, other", [("factor", 2, 3), ("factor", 2, 2.0), ("factor", 1, True), ("name", "a", "b"),
                                                    ("flag", True, False), ("kind", Mode.PLUS, Mode.MINUS), ("factor", 2, None),
                                                    ("dtype", torch.float32, torch.float64), ("factor", 2, torch.tensor(2)),
                                                    ("factor", torch.tensor(2), 2), ("factor", 0.0, -0.0)])
    def test_other_constant(self, livepool, same, name, value, other):
        graph = livepool.capture(self.fn, X, **{name: value})
        same(graph.replay(Y, **{name: value}), self.fn(Y, **{name: value}))
        with pytest.raises(livepool.ReplayMismatch, match=rf"kwargs\['{name}'\]"):
            graph.replay(Y, **{name: other})

    def test_nan_is_itself(self, livepool, same):
        graph = livepool.capture(self.fn, X, float("nan"))
        same(graph.replay(Y, float("nan")), self.fn(Y, float("nan")))

    def test_positional_is_named(self, livepool):
        graph = livepool.capture(self.fn, X, 2)
        with pytest.raises(livepool.ReplayMismatch, match=r"args\[1\] is 3, captured with 2"):
            graph.replay(Y, 3)

    @pytest.mark.parametrize("args, kwargs, message", [
        ((Y, Y), {}, "got 2 positional arguments, captured with 1;"),
        ((), {}, "got 0 positional arguments, captured with 1;"),
        ((Y,), {"factor": 2}, r"got keyword arguments \['factor'\], captured with \[\];"),
        (([Y],), {}, r"^args\[0\] is nested in another way than at the capture;"),
        ((), {"x": Y}, "got 0 positional arguments, captured with 1;"),
    ])
    def test_other_nesting(self, livepool, args, kwargs, message):
        graph = livepool.capture(self.fn, X)
        with pytest.raises(livepool.ReplayMismatch, match=message) as raised:
            graph.replay(*args, **kwargs)
        assert "TreeSpec" not in str(raised.value)

    def test_other_nesting_of_a_keyword(self, livepool):
        graph = livepool.capture(lambda x, mask: x * mask[0], X, mask=[X])
        with pytest.raises(livepool.ReplayMismatch, match=r"^kwargs\['mask'\] is nested in another way"):
            graph.replay(Y, mask=(Y,))

    @pytest.mark.parametrize("other", [Y[:3], Y.view(2, 3), Y.double(), Y.half(), Y.to(torch.int32), torch.zeros(12)[::2], torch.zeros(8)[2:],
                                       torch.zeros(1).expand(6), Y.to("meta")],
                             ids=["size", "shape", "dtype", "half", "kind", "stride", "offset", "expanded", "device"])
    def test_other_tensor(self, livepool, other):
        graph = livepool.capture(lambda x, nested: x * nested["mask"], X, {"mask": X})
        with pytest.raises(livepool.ReplayMismatch, match=r"args\[1\]\['mask'\]"):
            graph.replay(Y, {"mask": other})

    def test_subclass(self, livepool):
        class Tagged(torch.Tensor):
            pass

        graph = livepool.capture(lambda x: x * 2, X)
        with pytest.raises(livepool.ReplayMismatch, match=r"args\[0\].*Tagged"):
            graph.replay(Y.as_subclass(Tagged))

    def test_several_shapes_side_by_side(self, livepool, same):
        """Field fault 15: prefill and decode, in turns, each from its own graph."""
        def fn(x):
            return (x @ x.t()).softmax(-1) @ x + 1

        inputs = [torch.randn(8, 4), torch.randn(1, 4)]
        graphs = [livepool.capture(fn, x) for x in inputs]
        for step in range(50):
            x = inputs[step % 2] + step / 50
            same(graphs[step % 2].replay(x), fn(x))
        assert all(graph.report()["misses"] == 0 for graph in graphs)


MUTABLE = {
    "numpy array": np.ones(6, dtype=np.float32),
    "bytearray": bytearray(6),
    "memoryview": memoryview(b"123456"),
    "array.array": array.array("f", [1.0] * 6),
    "object with __array__": type("Box", (), {"__array__": lambda self, *_: np.ones(6)})(),
}


@pytest.mark.parametrize("value", MUTABLE.values(), ids=MUTABLE)
def test_argument_whose_content_may_change_is_refused(refused, value):
    refused(lambda x, values: x + len(values), X, value, match=rf"args\[1\] is a {type(value).__name__}.*pass a tensor")
    refused(lambda x, values: x + len(values["a"]), X, values={"a": value}, match=r"kwargs\['values'\]\['a'\]")


def test_bytes_among_the_arguments(livepool, same):
    _both(livepool, same, lambda x, values: x + values[0], b"123")


def test_result_of_another_structure_is_told_shortly(livepool):
    class Settings:
        value = 1

    graph = livepool.capture(lambda x: (x * 2, Settings.value), X)
    Settings.value = 2
    with pytest.raises(livepool.CheckFailed, match=r"result\[1\] is 2, and was 1 at the capture"):
        graph.replay(Y)


def test_not_callable(livepool):
    with pytest.raises(TypeError, match="callable"):
        livepool.capture(3, X)


def test_tensor_in_a_plain_object_result_is_refused(refused):
    refused(lambda x: types.SimpleNamespace(y=x * 2), X, match="SimpleNamespace")


class TestConsume:
    def test_is_a_replay_that_empties_the_list(self, livepool, same):
        graph = livepool.capture(lambda x, k: (x * k, x.sum()), X, 2)
        graph.replay(Y, 2)
        arguments = [Y.clone(), 2]
        same(graph.consume(arguments), (Y * 2, Y.sum()))
        assert arguments == []

    def test_nobody_else_holds_the_tensor_in_the_pass(self, livepool):
        graph = livepool.capture(lambda x: (x * 2).sum() + 1, X)
        graph.replay(Y)
        freed = []

        class Bytes(bytearray):
            def __del__(self):
                freed.append(len(freed))

        arguments = [torch.frombuffer(Bytes(X.numel() * 4), dtype=torch.float32).view(X.shape)]
        graph.consume(arguments)
        assert freed == [0]

    def test_another_structure_is_refused(self, livepool):
        graph = livepool.capture(lambda x: x * 2, X)
        with pytest.raises(livepool.ReplayMismatch):
            graph.consume([X, X])

    def test_arguments_by_name(self, livepool, same):
        graph = livepool.capture(lambda x, k: x * k, x=X, k=3)
        graph.replay(x=Y, k=3)
        arguments = {"k": 3, "x": Y.clone()}
        same(graph.consume(arguments), Y * 3)
        assert arguments == {}

    def test_other_containers_are_refused(self, livepool):
        graph = livepool.capture(lambda x: x * 2, X)
        with pytest.raises(livepool.InvalidInput, match="in a list, or by name in a dict, not in a tuple"):
            graph.consume((X,))

    def test_a_replay_that_does_not_begin_leaves_them(self, livepool, same):
        graph = livepool.capture(lambda x: x * 2, X)
        for arguments in ([X.double()], {"x": X}):
            before = list(arguments)
            with pytest.raises(livepool.ReplayMismatch):
                graph.consume(arguments)
            assert list(arguments) == before
        same(arguments["x"], X)
