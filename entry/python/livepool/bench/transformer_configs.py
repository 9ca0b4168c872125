"""Hugging Face models made from configs: shapes as published (bert, gpt2, llama1b) or small (llama), no caches."""

NAMES = ("bert", "gpt2", "llama", "llama1b")


def build(name):
    """The model `name` without its language head, with the weights of its own random initialisation."""
    import transformers

    if name == "bert":
        return transformers.BertModel(transformers.BertConfig())
    if name == "gpt2":
        return transformers.GPT2Model(transformers.GPT2Config(use_cache=False))
    return transformers.LlamaModel(_llama_config(transformers, name))


def _llama_config(transformers, name):
    if name == "llama":
        shape = dict(vocab_size=32000, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                     num_attention_heads=8, num_key_value_heads=4)
    else:
        shape = dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                     num_attention_heads=32, num_key_value_heads=8)
    return transformers.LlamaConfig(**shape, use_cache=False)
