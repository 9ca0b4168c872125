"""Models with random weights and their inputs, both made from seeds; nothing is downloaded."""

import difflib
import importlib.util
import warnings
from dataclasses import dataclass
from typing import Callable

import torch

from livepool.bench import transformer_configs

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
IMAGE_SIZE = 224
SEQUENCE = 128


class UnknownModel(ValueError):
    """No model has this name, or the package that has it is not installed."""


@dataclass(frozen=True)
class Workload:
    """A model, and `inputs(seed)` -> keyword arguments of its call."""

    model: torch.nn.Module
    inputs: Callable[[int], dict]


def image_names():
    if importlib.util.find_spec("torchvision") is None:
        return []
    import torchvision

    return torchvision.models.list_models(module=torchvision.models)


def check_name(name):
    images = image_names()
    known = [*images, *transformer_configs.NAMES]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
        hint = f"near matches: {', '.join(near)}" if near else "no name is near"
        if not images:
            hint += "; torchvision is not installed"
        raise UnknownModel(f"unknown model '{name}'; {hint}")
    if name in transformer_configs.NAMES and importlib.util.find_spec("transformers") is None:
        raise UnknownModel(f"model '{name}' needs the package transformers, which is not installed")


def build(name, device, dtype, batch):
    """The workload called `name`, in eval mode on `device`."""
    check_name(name)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes of model code about initialisation, which is random here
        if name in transformer_configs.NAMES:
            model, inputs = _text_model(name, device, batch)
        else:
            model, inputs = _image_model(name, device, dtype, batch)
    # Cast before the move: the device never sees the wider weights.
    return Workload(model.to(DTYPES[dtype]).to(device), inputs)


def _image_model(name, device, dtype, batch):
    import torchvision

    def images(count, seed):
        return torch.randn(count, 3, IMAGE_SIZE, IMAGE_SIZE, generator=torch.Generator().manual_seed(seed))

    model = torchvision.models.get_model(name, weights=None).eval()
    make_every_weight_matter(model)
    calibrate_batch_norm(model, x=images(4, seed=1000))
    return model, lambda seed: {"x": images(batch, seed).to(DTYPES[dtype]).to(device)}


def _text_model(name, device, batch):
    model = transformer_configs.build(name).eval()
    make_every_weight_matter(model)
    vocabulary = model.config.vocab_size

    def inputs(seed):
        tokens = torch.randint(vocabulary, (batch, SEQUENCE), generator=torch.Generator().manual_seed(seed))
        return {"input_ids": tokens.to(device)}

    return model, inputs


@torch.no_grad()
def make_every_weight_matter(model):
    """Gives weights that start at (nearly) zero a value that shows in the output.

    torchvision starts ViT's head at zero, so that its output is zero whatever came before, and ConvNeXt's
    layer_scale at 1e-6, which hides a wrong block below the last bit. A comparison of such outputs proves nothing.
    """
    for parameter in model.parameters():
        if parameter.numel() and parameter.abs().max() < 1e-4:
            parameter.normal_(0.0, 0.1)


@torch.no_grad()
def calibrate_batch_norm(model, **inputs):
    """Sets the running statistics from one pass, as training would.

    With untrained ones the signal of a deep network dies out (MobileNet's output barely depends on the image) or
    overflows (Inception), and again a comparison proves nothing.
    """
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train().momentum = 1.0
    model(**inputs)
    for norm, momentum in zip(norms, momenta):
        norm.eval().momentum = momentum


def storage_bytes(tensors):
    """Bytes of the storages behind `tensors`, each storage counted once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())


def weights_bytes(model):
    return storage_bytes([*model.parameters(), *model.buffers()])
