"""Grad, inference and autocast mode, default dtype and kernel settings: part of the computation."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn


@pytest.fixture
def layer():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)).eval()


X = torch.arange(16.0).view(2, 8) / 10
Y = X - 0.7


def test_grad_mode_is_refused(livepool, layer):
    with torch.enable_grad(), pytest.raises(livepool.CaptureRefused, match=r"grad mode is enabled; capture under torch\.(no_grad|inference_mode)\(\)"):
        livepool.capture(layer, X)


def test_enable_grad_inside_is_refused(refused, layer):
    def fn(x):
        with torch.enable_grad():
            return layer(x) + 1

    refused(fn, X, match="grad")


@pytest.mark.parametrize("captured", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("replayed", [torch.no_grad, torch.inference_mode])
def test_capture_and_replay_in_other_modes(livepool, same, layer, captured, replayed):
    with captured():
        graph = livepool.capture(layer, X)
    with replayed():
        for x in (Y, Y + 1, X):
            got, want = graph.replay(x), layer(x)
            same(got, want)
            assert got.is_inference() == want.is_inference()


def test_replay_with_grad_mode_on(livepool, same, layer):
    """A replay computes no gradients, which eager would: it says so, and works again without grad mode."""
    graph = livepool.capture(layer, X)
    with torch.enable_grad(), pytest.raises(livepool.ReplayMismatch, match=r"grad mode is enabled.*torch\.no_grad"):
        graph.replay(Y)
    same(graph.replay(Y), layer(Y))


def test_an_input_that_requires_grad(livepool, same, layer):
    """A program that asks would take another path."""
    graph = livepool.capture(layer, X)
    with pytest.raises(livepool.ReplayMismatch):
        graph.replay(Y.clone().requires_grad_())
    same(graph.replay(Y), layer(Y))


def test_inference_mode_inside(livepool, same, layer):
    @torch.inference_mode()
    def fn(x):
        return layer(x) * 2

    def outer(x):
        return fn(x + 1)

    graph = livepool.capture(outer, X)
    for x in (Y, Y + 1):
        got, want = graph.replay(x), outer(x)
        same(got, want)
        assert got.is_inference() == want.is_inference()


class TestAutocast:
    BODIES = {
        "linears": lambda layer: layer,
        "matmul and softmax": lambda layer: lambda x: (x @ x.t()).softmax(-1) + layer(x).sum(),
        "weight used twice": lambda layer: lambda x: layer[0](layer[0](x)) + F.linear(x, layer[0].weight) @ layer[0].weight,
        "addmm": lambda layer: lambda x: torch.addmm(layer[0].bias, x, layer[0].weight) + layer[0](x),
        "float32 composite of low-precision ops": lambda layer: lambda x: torch.linalg.multi_dot([x, x.t(), x, x.t()]) * 2,
        "cosine similarity and layer norm": lambda layer: lambda x: F.cosine_similarity(x, layer(x)) + F.layer_norm(x, (8,)).sum(),
        "cdist": lambda layer: lambda x: torch.cdist(x, layer(x)) * 2,
        "attention": lambda layer: lambda x: F.scaled_dot_product_attention(*[layer(x).view(1, 2, 2, 4)] * 3),
        "conv": lambda layer: lambda x: F.conv1d(x[None], layer[0].weight.view(8, 2, 4)[:, :, :3]) + 1,
        "promotion": lambda layer: lambda x: torch.cat([layer(x), x]) + torch.stack([x, x])[0, :1],
    }

    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
    def test_around(self, livepool, same, layer, body):
        fn = body(layer)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            graph = livepool.capture(fn, X)
            for x in (Y, Y + 1, X):
                same(graph.replay(x), fn(x))

    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
    def test_inside(self, livepool, same, layer, body):
        def fn(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = body(layer)(x)
            return y.float() * 2 + layer(x).sum()

        graph = livepool.capture(fn, X)
        for x in (Y, Y + 1, X):
            same(graph.replay(x), fn(x))
        assert not torch.is_autocast_enabled("cpu")

    def test_disabled_inside(self, livepool, same, layer):
        def fn(x):
            y = layer(x)
            with torch.autocast("cpu", enabled=False):
                z = x @ x.t()
            return layer(x) + z.sum(), y

        with torch.autocast("cpu", dtype=torch.bfloat16):
            graph = livepool.capture(fn, X)
            for x in (Y, Y + 1):
                same(graph.replay(x), fn(x))
            assert torch.is_autocast_enabled("cpu")

    def test_on_at_capture_only(self, livepool, layer):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            graph = livepool.capture(layer, X)
        with pytest.raises(livepool.ReplayMismatch, match="autocast"):
            graph.replay(Y)

    def test_on_at_replay_only(self, livepool, layer):
        graph = livepool.capture(layer, X)
        with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(livepool.ReplayMismatch, match="autocast"):
            graph.replay(Y)

    def test_other_dtype_at_replay(self, livepool, layer):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            graph = livepool.capture(layer, X)
        with torch.autocast("cpu", dtype=torch.float16), pytest.raises(livepool.ReplayMismatch, match="autocast"):
            graph.replay(Y)

    def test_cached_weights_of_before(self, livepool, same, layer):
        """A weight that was converted before the capture is in autocast's cache; the pass must not depend on it."""
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer(X)
            graph = livepool.capture(layer, X)
        layer[0].weight.mul_(2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for x in (Y, Y + 1):
                same(graph.replay(x), layer(x))

    def test_the_cache_is_left_on(self, livepool, layer):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            livepool.capture(layer, X).replay(Y)
            assert torch.is_autocast_cache_enabled()


class TestSettings:
    @pytest.fixture(autouse=True)
    def _restore(self):
        dtype = torch.get_default_dtype()
        yield
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(False)

    def test_default_dtype_at_replay(self, livepool):
        graph = livepool.capture(lambda x: x + torch.zeros(8) + torch.arange(8.0).mean(), X)
        torch.set_default_dtype(torch.float64)
        with pytest.raises(livepool.ReplayMismatch, match="default dtype"):
            graph.replay(Y)
        torch.set_default_dtype(torch.float32)
        graph.replay(Y)

    def test_default_dtype_at_both(self, check, normal):
        torch.set_default_dtype(torch.float64)
        check(lambda x: x + torch.zeros(8) + torch.ones(8, dtype=torch.int64) / 3, normal((8,)))

    def test_default_dtype_inside(self, refused):
        def fn(x):
            torch.set_default_dtype(torch.float64)
            y = x + torch.zeros(8)
            torch.set_default_dtype(torch.float32)
            return y

        refused(fn, X, match="default dtype")

    def test_deterministic_algorithms(self, livepool):
        graph = livepool.capture(lambda x: x * 2 + 1, X)
        torch.use_deterministic_algorithms(True)
        with pytest.raises(livepool.ReplayMismatch, match="deterministic"):
            graph.replay(Y)

    def test_attention_kernel(self, livepool):
        q = X.view(1, 2, 2, 4)
        graph = livepool.capture(lambda q: F.scaled_dot_product_attention(q, q, q) + 1, q)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), pytest.raises(livepool.ReplayMismatch, match="attention"):
            graph.replay(q)

    def test_mkldnn(self, livepool, layer):
        graph = livepool.capture(layer, X)
        with torch.backends.mkldnn.flags(enabled=False), pytest.raises(livepool.ReplayMismatch, match="mkldnn"):
            graph.replay(Y)
