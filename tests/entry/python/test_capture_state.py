"""Tensors that the callable owns: their bytes are followed, their replacement is refused."""

import types

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

        refused(fn, X, match="replaces 'cache")

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
