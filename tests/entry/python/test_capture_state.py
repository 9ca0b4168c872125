"""Tensors that the callable owns: their bytes are followed, their replacement is refused."""

import gc
import types
import weakref

import pytest
import torch
from torch import nn


@pytest.fixture
def layer():
    torch.manual_seed(3)
    return nn.Linear(4, 4).eval()


X = torch.arange(8.0).view(2, 4)
Y = X * 0.5 - 1


def _bytes_follow(livepool, same, fn, change, *args):
    """After `change`, a replay gives what fn gives then: on the capture's bytes and on others."""
    args = args or (X,)
    graph = livepool.capture(fn, *args)
    same(graph.replay(*args), fn(*args))
    change()
    for each in (args, (Y, *args[1:]), (Y + 1, *args[1:])):
        same(graph.replay(*each), fn(*each))


class TestBytesAreFollowed:
    def test_weight_written_in_place(self, livepool, same, layer):
        _bytes_follow(livepool, same, lambda x: torch.relu(layer(x)) * 2, lambda: layer.weight.add_(1))

    def test_load_state_dict(self, livepool, same, layer):
        other = nn.Linear(4, 4)
        _bytes_follow(livepool, same, layer, lambda: layer.load_state_dict(other.state_dict()))

    def test_tensor_in_closure(self, livepool, same):
        scale = torch.ones(4)
        _bytes_follow(livepool, same, lambda x: (x + 1) * scale, lambda: scale.fill_(3))

    def test_tensor_in_closure_list_and_dict(self, livepool, same):
        owned = {"a": [torch.ones(4)], "b": (torch.zeros(4),)}
        _bytes_follow(livepool, same, lambda x: (x + 1) * owned["a"][0] - owned["b"][0], lambda: owned["b"][0].fill_(3))

    def test_tensor_in_plain_object(self, livepool, same):
        box = types.SimpleNamespace(inner=types.SimpleNamespace(scale=torch.ones(4)))
        _bytes_follow(livepool, same, lambda x, box: (x + 1) * box.inner.scale, lambda: box.inner.scale.fill_(3), X, box)

    def test_default_argument(self, livepool, same):
        def fn(x, scale=torch.ones(4)):
            return (x + 1) * scale

        _bytes_follow(livepool, same, fn, lambda: fn.__defaults__[0].fill_(3))

    def test_bound_method(self, livepool, same, layer):
        _bytes_follow(livepool, same, layer.forward, lambda: layer.bias.fill_(3))

    def test_load_state_dict_of_tied_weights(self, livepool, same, layer):
        layer.twin = layer.weight
        _bytes_follow(livepool, same, lambda x: layer(x) @ layer.twin, lambda: layer.twin.mul_(3))


class Attributes(nn.Module):
    """Has these attributes, which its forward might read."""

    def __init__(self, **attributes):
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)
        self.eval()

    def forward(self, x):
        return x * 2


class TestEqualValuesAreLetPass:
    @pytest.mark.parametrize("before, after", [
        (float("1.5"), float("1.5")), (float("nan"), float("nan")), (-0.0, float("-0.0")), (int("123456"), int("123456")),
        ("".join(["a", "bc"]), "".join(["ab", "c"])), (torch.device("cpu"), torch.device("cpu")),
    ])
    def test_attribute(self, livepool, same, before, after):
        model = Attributes(setting=before)
        graph = livepool.capture(model, X)
        model.setting = after
        for x in (Y, Y + 1):
            same(graph.replay(x), model(x))

    def test_value_cached_by_the_pass(self, livepool, same):
        model = Attributes()
        model.forward = lambda x: (setattr(model, "last_shape", x.shape[0]), x * 2)[1]
        graph = livepool.capture(model, X)
        for x in (Y, Y + 1):
            same(graph.replay(x), x * 2)

    def test_log_is_cleared(self, livepool, same):
        log = ["first"]
        graph = livepool.capture(lambda x: (log.append("call"), x * 2)[1], X)
        log.clear()
        same(graph.replay(Y), Y * 2)
        assert log == ["call"]

    def test_log(self, livepool, same):
        log = ["first"]
        graph = livepool.capture(lambda x: (log.append("call"), x * 2)[1], X)
        for x in (Y, Y + 1, Y + 2):
            same(graph.replay(x), x * 2)


class TestLifetimes:
    def test_example_inputs_are_let_go(self, livepool):
        x, mask = X.clone(), {"a": X.clone()}
        kept = weakref.ref(x), weakref.ref(mask["a"])
        graph = livepool.capture(lambda x, mask: x * mask["a"], x, mask=mask)
        del x, mask
        gc.collect()
        assert [each() for each in kept] == [None, None]
        graph.replay(Y, mask={"a": Y + 1})

    def test_model_that_holds_its_graph(self, livepool, layer, same):
        model = Attributes(layer=layer, graph=None, alpha=1.0)
        del layer
        graph = livepool.capture(model, X)
        model.__dict__["graph"] = graph
        alive = weakref.ref(model)
        del graph, model
        gc.collect()
        assert alive() is None

    def test_graph_keeps_its_callable(self, livepool, same):
        graph = livepool.capture(lambda x: x * 2 + 1, X)
        gc.collect()
        for x in (Y, Y + 1):  # the first is compared with the callable
            same(graph.replay(x), x * 2 + 1)


class TestReplacementIsRefused:
    def replaced(self, livepool, fn, change, match, *args):
        graph = livepool.capture(fn, *(args or (X,)))
        graph.replay(*(args or (Y,)))
        change()
        with pytest.raises(livepool.ReplayMismatch, match=match):
            graph.replay(*(args or (Y,)))

    def test_data_assigned(self, livepool, layer):
        self.replaced(livepool, layer, lambda: setattr(layer.weight, "data", torch.ones(4, 4)), "weight")

    def test_data_assigned_of_another_shape(self, livepool, layer):
        self.replaced(livepool, layer, lambda: setattr(layer.weight, "data", torch.ones(8, 4)), "weight")

    def test_new_parameter(self, livepool, layer):
        self.replaced(livepool, layer, lambda: setattr(layer, "weight", nn.Parameter(torch.ones(4, 4))), "weight")

    def test_parameter_set_to_none(self, livepool, layer):
        self.replaced(livepool, layer, lambda: setattr(layer, "bias", None), "bias")

    def test_parameter_set_from_none(self, livepool):
        layer = nn.Linear(4, 4, bias=False).eval()
        self.replaced(livepool, layer, lambda: setattr(layer, "bias", nn.Parameter(torch.ones(4))), "bias")

    def test_half(self, livepool, layer):
        self.replaced(livepool, layer, layer.half, "weight")

    def test_double_by_to(self, livepool, layer):
        self.replaced(livepool, layer, lambda: layer.to(torch.float64), "weight")

    def test_memory_format(self, livepool):
        conv = nn.Conv2d(3, 3, 3).eval()
        image = torch.ones(1, 3, 5, 5)
        self.replaced(livepool, conv, lambda: conv.to(memory_format=torch.channels_last), "weight", image)

    def test_set_of_another_storage(self, livepool, layer):
        self.replaced(livepool, layer, lambda: layer.weight.set_(torch.ones(4, 4)), "weight")

    def test_buffer(self, livepool):
        norm = nn.BatchNorm1d(4).eval()
        self.replaced(livepool, norm, lambda: setattr(norm, "running_mean", torch.ones(4)), "running_mean")

    def test_submodule(self, livepool, layer):
        model = nn.Sequential(layer, nn.ReLU()).eval()
        self.replaced(livepool, model, lambda: model.__setitem__(1, nn.GELU()), "1")

    def test_submodule_added(self, livepool, layer):
        model = nn.Sequential(layer, nn.ReLU()).eval()
        self.replaced(livepool, model, lambda: model.append(nn.GELU()), "_modules")

    def test_closure_variable(self, livepool):
        scale = torch.ones(4)

        def change():
            nonlocal scale
            scale = torch.zeros(4)

        self.replaced(livepool, lambda x: (x + 1) * scale, change, "scale")

    def test_list_entry(self, livepool):
        owned = [torch.ones(4)]
        self.replaced(livepool, lambda x: (x + 1) * owned[0], lambda: owned.__setitem__(0, torch.zeros(4)), "owned")

    def test_list_grown(self, livepool):
        owned = [torch.ones(4)]
        self.replaced(livepool, lambda x: sum((x * t for t in owned), x), lambda: owned.append(torch.ones(4)), "owned")

    def test_dict_grown(self, livepool):
        owned = {"a": torch.ones(4)}
        self.replaced(livepool, lambda x: sum((x * t for t in owned.values()), x), lambda: owned.update(b=torch.ones(4)), "owned")

    def test_attribute_of_argument_object(self, livepool):
        box = types.SimpleNamespace(scale=torch.ones(4))
        self.replaced(livepool, lambda x, box: (x + 1) * box.scale, lambda: setattr(box, "scale", torch.zeros(4)), "scale", X, box)

    def test_attribute_set_from_none(self, livepool):
        model = Attributes(bias=None)
        self.replaced(livepool, model, lambda: setattr(model, "bias", torch.ones(4)), "state 'bias' was replaced")

    def test_forward_of_the_instance_exchanged(self, livepool, layer):
        layer.forward = lambda x: x * 2
        self.replaced(livepool, layer, lambda: setattr(layer, "forward", lambda x: x * 3), "forward")

    @pytest.mark.parametrize("before, after", [
        (torch.relu, torch.sigmoid), (1.0, 0.0), (0.0, -0.0), (1, True), (1, 1.0), ("a", "b"), (True, False), (None, 0),
        (torch.float32, torch.half),
    ])
    def test_attribute(self, livepool, before, after):
        model = Attributes(setting=before)
        self.replaced(livepool, model, lambda: setattr(model, "setting", after), "state 'setting' was replaced")

    def test_attribute_of_a_submodule(self, livepool):
        inner = Attributes(alpha=1.0)
        self.replaced(livepool, nn.Sequential(inner).eval(), lambda: setattr(inner, "alpha", 0.0), "0.alpha")

    def test_attribute_added(self, livepool):
        box = types.SimpleNamespace(a=1.0)
        self.replaced(livepool, lambda x, box: x * getattr(box, "b", 2), lambda: setattr(box, "b", 3), "attributes", X, box)

    def test_entry_of_a_list_of_numbers(self, livepool):
        model = Attributes(anchors=[1.0, 2.0])
        self.replaced(livepool, model, lambda: model.anchors.__setitem__(0, 9.0), r"anchors\[0\]")

    def test_list_of_numbers_grown(self, livepool):
        model = Attributes(anchors=[1.0, 2.0])
        self.replaced(livepool, model, lambda: model.anchors.append(9.0), "anchors' has 3 entries instead of 2")

    def test_number_in_a_dict_in_a_tuple(self, livepool):
        model = Attributes(nested=({"a": 1.0},))
        self.replaced(livepool, model, lambda: model.nested[0].update(a=2.0), "nested")

    def test_number_of_an_argument_object(self, livepool):
        box = types.SimpleNamespace(t=0.5, extra=None)
        self.replaced(livepool, lambda x, box: x * box.t, lambda: setattr(box, "t", 0.7), "t' was replaced", X, box)

    def test_number_in_a_closure(self, livepool):
        k = 2.0

        def change():
            nonlocal k
            k = 5.0

        self.replaced(livepool, lambda x: x * k, change, "closure variable 'k'")

    def test_fast_path_of_attention(self, livepool, layer):
        before = torch.backends.mha.get_fastpath_enabled()
        try:
            self.replaced(livepool, layer, lambda: torch.backends.mha.set_fastpath_enabled(not before), "get_fastpath_enabled")
        finally:
            torch.backends.mha.set_fastpath_enabled(before)

    def test_train(self, livepool, layer):
        model = nn.Sequential(layer, nn.Dropout(0.5)).eval()
        self.replaced(livepool, model, model.train, "training")

    def test_one_submodule_to_train(self, livepool, layer):
        model = nn.Sequential(layer, nn.Dropout(0.5)).eval()
        self.replaced(livepool, model, lambda: model[1].train(), "training")

    def test_forward_hook(self, livepool, layer):
        self.replaced(livepool, layer, lambda: layer.register_forward_hook(lambda *_: None), "hooks")

    def test_forward_pre_hook(self, livepool, layer):
        self.replaced(livepool, nn.Sequential(layer).eval(), lambda: layer.register_forward_pre_hook(lambda *_: None), "hooks")

    def test_hook_exchanged(self, livepool, layer):
        handle = layer.register_forward_hook(lambda *_: None)

        def change():
            handle.remove()
            layer.register_forward_hook(lambda module, args, result: result * 2)

        self.replaced(livepool, layer, change, "hooks")

    def test_global_hook(self, livepool, layer):
        handles = []
        try:
            self.replaced(livepool, layer, lambda: handles.append(nn.modules.module.register_module_forward_hook(lambda *_: None)), "hooks")
        finally:
            handles[0].remove()

    def test_impl_exchanged(self, livepool, same, layer):
        """swap_tensors changes what a Parameter object is: torch itself refuses while the graph holds it."""
        graph = livepool.capture(layer, X)
        try:
            torch.utils.swap_tensors(layer.weight, nn.Parameter(torch.ones(4, 4)))
        except RuntimeError:
            pass
        for x in (Y, Y + 1):
            try:
                same(graph.replay(x), layer(x))
            except livepool.ReplayMismatch:
                pass

    def test_parametrization(self, livepool, layer):
        self.replaced(livepool, layer, lambda: nn.utils.parametrizations.orthogonal(layer), "weight|_modules|attributes")

    def test_forward_replaced(self, livepool, layer):
        self.replaced(livepool, layer, lambda: setattr(layer, "forward", lambda x: x), "forward|attributes")

    def test_parameter_of_a_scripted_module(self, livepool):
        torch._C._jit_set_texpr_fuser_enabled(False)
        scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4)).eval())
        self.replaced(livepool, scripted, lambda: setattr(getattr(scripted, "0").weight, "data", torch.ones(4, 4)), "weight")


class TestRefusedAtCapture:
    def test_training_mode(self, refused, layer):
        refused(layer.train(), X, match=r"training mode; call .eval\(\)")

    def test_training_submodule(self, refused, layer):
        model = nn.Sequential(layer, nn.Dropout()).eval()
        model[1].train()
        refused(model, X, match="'1' is in training mode")

    def test_global_tensor(self, refused):
        refused(lambda x: x + Y, X, match="hidden input")

    def test_global_tensor_written(self, refused):
        refused(lambda x: Y.add_(x), X, match="hidden input")

    def test_global_module(self, refused):
        refused(lambda x: GLOBAL_LAYER(x), X, match="hidden input")

    def test_state_replaced_by_the_pass(self, refused):
        cache = {"k": torch.zeros(0, 4)}

        def fn(x):
            cache["k"] = torch.cat([cache["k"], x])
            return cache["k"].sum(0)

        refused(fn, X, match="'cache.*was replaced; a replay would not")

    def test_attribute_replaced_by_the_pass(self, refused, layer):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("last", torch.zeros(2, 4))

            def forward(self, x):
                self.last = x * 2
                return self.last + 1

        refused(Model().eval(), X, match="last")

    def test_list_grown_by_the_pass(self, refused):
        kept = [torch.zeros(2, 4)]

        def fn(x):
            kept.append(x * 2)
            return x + 1

        refused(fn, X, match="kept")

    def test_counter_in_python(self, refused):
        class Model(nn.Module):
            steps = 0

            def __init__(self):
                super().__init__()
                self.calls = 0

            def forward(self, x):
                self.calls += 1
                return x * self.calls

        refused(Model().eval(), X, match="calls")

    def test_list_of_tensors_grown_by_a_number(self, refused):
        kept = [torch.zeros(2, 4)]
        refused(lambda x: (kept.append(1), x + kept[0])[1], X, match="kept' has 2 entries instead of 1")

    def test_nonlocal_counter(self, refused):
        calls = 0

        def fn(x):
            nonlocal calls
            calls += 1
            return x * calls

        refused(fn, X, match="calls")


GLOBAL_LAYER = nn.Linear(4, 4).eval()


class TestWrittenByThePass:
    """State that the pass writes to: once for the capture, once for each replay."""

    def test_counter_buffer(self, livepool, same):
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros((), dtype=torch.int64))

            def forward(self, x):
                self.count += 1
                return x * self.count

        model = Counter().eval()
        graph = livepool.capture(model, X)
        assert model.count.item() == 1
        for step in (2, 3, 4):
            same(graph.replay(Y), Y * step)
            assert model.count.item() == step

    def test_running_stat_in_eval(self, livepool, same):
        class Smoother(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(4))

            def forward(self, x):
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
                return x - self.mean

        replayed, eager = Smoother().eval(), Smoother().eval()
        graph = livepool.capture(replayed, X)
        eager(X)
        same(replayed.mean, eager.mean)
        for x in (Y, Y + 1, X):
            same(graph.replay(x), eager(x))
            same(replayed.mean, eager.mean)

    def test_batch_statistics_in_functional_training(self, livepool, same):
        """native_batch_norm writes the running statistics, and its schema does not say so."""
        def smoothed(mean, var):
            return lambda x: nn.functional.batch_norm(x, mean, var, training=True) * 2

        mean, var = torch.zeros(4), torch.ones(4)
        mean_eager, var_eager = torch.zeros(4), torch.ones(4)
        eager = smoothed(mean_eager, var_eager)
        graph = livepool.capture(smoothed(mean, var), X)
        eager(X)
        same((mean, var), (mean_eager, var_eager))
        for x in (Y, Y + 1, X):
            same(graph.replay(x), eager(x))
            same((mean, var), (mean_eager, var_eager))

    def test_static_cache_in_closure(self, livepool, same):
        self._cache(livepool, same, torch.zeros(3, 5, 4), lambda cache: lambda x, at: self._step(cache, x, at))

    def test_static_cache_in_a_list(self, livepool, same):
        self._cache(livepool, same, torch.zeros(3, 5, 4), lambda cache: (lambda layers: lambda x, at: self._step(layers[0], x, at))([cache]))

    def test_static_cache_in_an_argument_object(self, livepool, same):
        boxes = [types.SimpleNamespace(k=torch.zeros(3, 5, 4)) for _ in range(2)]

        def fn(x, at, cache):
            return self._step(cache.k, x, at)

        graph = livepool.capture(fn, torch.ones(3, 1, 4), torch.tensor([0]), boxes[0])
        fn(torch.ones(3, 1, 4), torch.tensor([0]), boxes[1])
        for step in range(1, 5):
            x, at = torch.full((3, 1, 4), step / 3), torch.tensor([step])
            same(graph.replay(x, at, boxes[0]), fn(x, at, boxes[1]))
            same(boxes[0].k, boxes[1].k)
        with pytest.raises(livepool.ReplayMismatch, match=r"args\[2\]"):
            graph.replay(x, at, boxes[1])

    def test_static_cache_as_an_argument(self, livepool, same):
        cache, other = torch.zeros(3, 5, 4), torch.zeros(3, 5, 4)
        graph = livepool.capture(self._step, cache, torch.ones(3, 1, 4), torch.tensor([0]))
        self._step(other, torch.ones(3, 1, 4), torch.tensor([0]))
        for step in range(1, 5):
            x, at = torch.full((3, 1, 4), step / 3), torch.tensor([step])
            same(graph.replay(cache, x, at), self._step(other, x, at))
            same(cache, other)

    @staticmethod
    def _step(cache, x, at):
        cache.index_copy_(1, at, x * 2)
        return (x @ cache.transpose(1, 2)).softmax(-1) @ cache

    @staticmethod
    def _cache(livepool, same, cache, make):
        other = cache.clone()
        fn, eager = make(cache), make(other)
        graph = livepool.capture(fn, torch.ones(3, 1, 4), torch.tensor([0]))
        eager(torch.ones(3, 1, 4), torch.tensor([0]))
        same(cache, other)
        for step in range(1, 5):
            x, at = torch.full((3, 1, 4), step / 3), torch.tensor([step])
            same(graph.replay(x, at), eager(x, at))
            same(cache, other)

    def test_cache_then_indexing(self, livepool, same):
        """Indexing by integers has sizes that do not depend on data: it may follow a write to the caller's tensors."""
        def fn(cache, x, at):
            cache[at] = x
            return cache[at - 0] * 2

        cache, other = torch.zeros(5, 4), torch.zeros(5, 4)
        graph = livepool.capture(fn, cache, X, torch.tensor([0, 1]))
        fn(other, X, torch.tensor([0, 1]))
        for at in ([1, 2], [4, 0], [3, 3]):
            same(graph.replay(cache, X + 1, torch.tensor(at)), fn(other, X + 1, torch.tensor(at)))
            same(cache, other)

    @pytest.mark.parametrize("made", [torch.no_grad, torch.inference_mode])
    def test_state_under_inference_mode(self, livepool, same, made):
        with made():
            replayed, eager = torch.zeros(2, 4), torch.zeros(2, 4)
        with torch.inference_mode():
            graph = livepool.capture(lambda x: replayed.add_(x) * 2, X)
            eager.add_(X)
            for x in (Y, Y + 1, X):
                same(graph.replay(x), eager.add_(x) * 2)
                same(replayed, eager)

    def test_version_counter_moves(self, livepool):
        """Autograd must be able to see that a tensor which it has saved was changed."""
        cache = torch.zeros(2, 4)
        graph = livepool.capture(lambda x: cache.add_(x) * 2, X)
        graph.replay(X)
        before = cache._version
        graph.replay(X)
        assert cache._version > before
