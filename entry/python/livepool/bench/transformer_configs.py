"""Hugging Face models made from configs, without caches and language heads: shapes as published (bert, gpt2, llama1b,
t5enc, clip-vision, vit-hf, distilbert, dinov2, wav2vec2), the others small."""

import importlib.util

import torch

LENGTH = 128  # tokens, where the name says no other
SECOND_OF_SOUND = 16000

_SMALL = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8)
_SMALL_DECODER = dict(**_SMALL, vocab_size=32000, num_key_value_heads=4)

# name: class of the model, class of its config, what differs from the config's defaults
_CONFIGS = {
    "bert": ("BertModel", "BertConfig", {}),
    "clip-vision": ("CLIPVisionModel", "CLIPVisionConfig", {}),
    "deberta-v2": ("DebertaV2Model", "DebertaV2Config",
                   dict(**_SMALL, relative_attention=True, position_biased_input=False, pos_att_type=["p2c", "c2p"])),
    "dinov2": ("Dinov2Model", "Dinov2Config", {}),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {}),
    "gemma2": ("Gemma2Model", "Gemma2Config", dict(**_SMALL_DECODER, head_dim=32)),
    "gpt2": ("GPT2Model", "GPT2Config", {}),
    "llama": ("LlamaModel", "LlamaConfig",
              dict(vocab_size=32000, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                   num_attention_heads=8, num_key_value_heads=4)),
    "llama1b": ("LlamaModel", "LlamaConfig",
                dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                     num_attention_heads=32, num_key_value_heads=8)),
    "mixtral": ("MixtralModel", "MixtralConfig", dict(**_SMALL_DECODER, num_local_experts=8)),
    "opt": ("OPTModel", "OPTConfig",
            dict(hidden_size=256, word_embed_proj_dim=256, ffn_dim=1024, num_hidden_layers=4, num_attention_heads=8)),
    "qwen2": ("Qwen2Model", "Qwen2Config", _SMALL_DECODER),
    "t5": ("T5Model", "T5Config", dict(d_model=256, d_kv=32, d_ff=1024, num_layers=4, num_heads=8)),
    "t5enc": ("T5EncoderModel", "T5Config", dict(d_model=768, d_ff=3072, num_layers=12, num_heads=12)),
    "vit-hf": ("ViTModel", "ViTConfig", {}),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", {}),
    "whisper-encoder": ("WhisperModel", "WhisperConfig",
                        dict(d_model=384, encoder_layers=4, decoder_layers=1, encoder_attention_heads=6,
                             decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536)),
}


def names():
    """All names; none where transformers is not installed."""
    return [] if importlib.util.find_spec("transformers") is None else sorted(_CONFIGS)


def build(name):
    """The model, and `inputs(seed, batch, length)`: `length` tokens for models of text."""
    import transformers

    model_class, config_class, changes = _CONFIGS[name]
    config = getattr(transformers, config_class)(**changes)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = getattr(transformers, model_class)(config)
    if name.endswith("-encoder"):
        model = model.get_encoder()
    return model.eval(), lambda seed, batch, length: _inputs(model, seed, batch, length or LENGTH)


def _inputs(model, seed, batch, length):
    generator = torch.Generator().manual_seed(seed)
    config = model.config
    main = model.main_input_name
    if main == "pixel_values":
        return {main: torch.randn(batch, 3, config.image_size, config.image_size, generator=generator)}
    if main == "input_features":
        frames = 2 * config.max_source_positions
        return {main: torch.randn(batch, config.num_mel_bins, frames, generator=generator)}
    if main == "input_values":
        return {main: torch.randn(batch, SECOND_OF_SOUND, generator=generator)}
    inputs = {main: torch.randint(config.vocab_size, (batch, length), generator=generator)}
    if hasattr(model, "decoder"):
        inputs["decoder_input_ids"] = torch.randint(config.vocab_size, (batch, length // 2), generator=generator)
    return inputs
