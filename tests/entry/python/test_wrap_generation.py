"""Text generation with a static cache: prefill and decoding are two signatures of one wrapped model."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request, livepool):
    if request.param == "cuda":
        if not torch.cuda.is_available():
            pytest.skip("there is no CUDA device here")
        livepool.install("cuda")
    return request.param


class Attention(nn.Module):
    """One layer with a cache of its own, in buffers: key and value rows are written at the position of the token."""

    def __init__(self, width=16, heads=2, most=256):
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.norm = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, heads, most, width // heads))

    def forward(self, x, positions):
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, -1))
        self.keys.index_copy_(2, positions, k)
        self.values.index_copy_(2, positions, v)
        seen = torch.arange(self.keys.shape[2], device=x.device) <= positions[:, None]
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, vocabulary=50, width=16, layers=2):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Attention(width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, positions):
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x, positions)
        return self.head(x)


def _decode(step, prompt, n):
    """Greedy: `step(tokens, positions)` gives logits."""
    tokens, positions = [prompt], torch.arange(prompt.shape[1], device=prompt.device)
    logits = []
    for _ in range(n):
        logits.append(step(tokens[-1], positions)[:, -1:])
        tokens.append(logits[-1].argmax(-1))
        positions = positions[-1:] + 1
    return torch.cat(tokens, 1), torch.cat(logits, 1)


def test_a_decoder_with_its_cache_in_buffers(livepool, wrapped, same, device):
    torch.manual_seed(0)
    plain = Decoder().eval().to(device)
    module = wrapped(plain, capture_after=2)
    with torch.inference_mode():
        for seed in range(3):
            prompt = torch.randint(0, 50, (1, 7), generator=torch.Generator().manual_seed(seed)).to(device)
            same(_decode(module, prompt, 200), _decode(plain, prompt, 200))
            same(list(module.buffers()), list(plain.buffers()))
    report = livepool.explain(module)
    assert [each.status for each in report.signatures] == ["captured", "captured"]
    assert report.replayed == 3 * 200 - 2 - 2


@pytest.fixture
def llama(device):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=512)
    return transformers.LlamaForCausalLM(config).eval().to(device)


def test_a_static_cache_of_transformers(livepool, wrapped, same, llama, device):
    from transformers import StaticCache

    module = wrapped(llama, capture_after=2)
    prompt = torch.randint(0, 99, (1, 7), device=device)

    def generate(model):
        cache = StaticCache(config=model.config, max_cache_len=256)

        def step(tokens, positions):
            return model(input_ids=tokens, past_key_values=cache, cache_position=positions, use_cache=True).logits

        return _decode(step, prompt, 200)

    with torch.inference_mode():
        same(generate(module), generate(llama))
    assert livepool.explain(module).replayed == 200 - 3  # prefill, and one token before and one at the capture


GENERATE = {
    "greedy": {"do_sample": False},
    "greedy, static cache": {"do_sample": False, "cache_implementation": "static", "disable_compile": True},
    "sampled, static cache": {"do_sample": True, "cache_implementation": "static", "disable_compile": True},
    "beams": {"do_sample": False, "num_beams": 2},
}


@pytest.mark.parametrize("options", GENERATE.values(), ids=GENERATE)
def test_generate(livepool, wrapped, same, llama, device, options):
    module = wrapped(llama, capture_after=2)
    prompt = torch.randint(0, 99, (1, 7), device=device)

    def generate(model):
        torch.manual_seed(1)
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, pad_token_id=0, **options)

    plain = copy.deepcopy(llama)
    for _ in range(2):
        same(generate(module), generate(plain))
    if "static" in options.get("cache_implementation", ""):
        assert livepool.explain(module).replayed > 24
