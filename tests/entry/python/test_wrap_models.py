"""Networks as they come from torchvision and transformers, tiny and with random weights: wrapped against plain, bit for bit, on
poisoned slots."""

import copy

import pytest
import torch
from torch import nn


def _ids(seed, shape=(2, 7), vocabulary=50):
    return torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def _image(seed, side=32):
    return torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(seed))


def _vision(name):
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    return getattr(torchvision.models, name)(weights=None)


def _transformer(model, config, **sizes):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return getattr(transformers, model)(getattr(transformers, config)(**sizes))


MODELS = {
    "resnet18": (lambda: _vision("resnet18"), lambda seed: {"x": _image(seed)}),
    "mobilenet_v3_small": (lambda: _vision("mobilenet_v3_small"), lambda seed: {"x": _image(seed)}),
    "bert": (lambda: _transformer("BertModel", "BertConfig", vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                  intermediate_size=40),
             lambda seed: {"input_ids": _ids(seed), "attention_mask": torch.ones(2, 7, dtype=torch.long)}),
    "gpt2": (lambda: _transformer("GPT2LMHeadModel", "GPT2Config", vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=64,
                                  bos_token_id=1, eos_token_id=1),
             lambda seed: {"input_ids": _ids(seed), "use_cache": False, "output_hidden_states": True}),
    "t5": (lambda: _transformer("T5ForConditionalGeneration", "T5Config", vocab_size=50, d_model=32, d_kv=8, d_ff=40, num_layers=2,
                                num_heads=4),
           lambda seed: {"input_ids": _ids(seed), "decoder_input_ids": _ids(seed, (2, 4)), "use_cache": False}),
    "vit": (lambda: _transformer("ViTModel", "ViTConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                 intermediate_size=40, image_size=32, patch_size=8),
            lambda seed: {"pixel_values": _image(seed)}),
    "lstm": (lambda: nn.LSTM(8, 6, num_layers=2, batch_first=True), lambda seed: {"input": torch.randn(2, 3, 8), "hx": None}),
    "gru with a state": (lambda: nn.GRU(8, 6), lambda seed: {"input": torch.randn(3, 2, 8), "hx": torch.randn(1, 2, 6)}),
}


@pytest.mark.parametrize("build, arguments", MODELS.values(), ids=MODELS)
def test_model(wrapped, livepool, same, build, arguments):
    torch.manual_seed(0)
    plain = build().eval()
    module = wrapped(plain, capture_after=2)
    for seed in range(5):
        kwargs = arguments(seed)
        got, want = module(**copy.deepcopy(kwargs)), plain(**kwargs)
        assert type(got) is type(want)
        same(got, want)
    report = livepool.explain(module)
    assert report.replayed == 3, report
    assert report.signatures[0].graph["misses"] == 0


def test_a_cache_that_the_model_makes_is_refused_with_a_reason(wrapped, livepool):
    """A replay could not make the object; the message names the way out."""
    module = wrapped(MODELS["gpt2"][0]().eval())
    for seed in range(3):
        assert module(_ids(seed)).past_key_values.get_seq_length() == 7
    assert "DynamicCache" in livepool.explain(module).signatures[0].reason
