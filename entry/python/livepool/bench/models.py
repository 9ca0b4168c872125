"""Models with random weights and their inputs, both made from seeds; nothing is downloaded.

A name is that of a family's model, with its own batch size and length where it says so: `resnet50`, `vit_l_16@32`,
`bert@32x128`.
"""

import difflib
import re
import warnings
from dataclasses import dataclass
from typing import Callable

import torch
from torch.utils._pytree import tree_map

from livepool.bench import own_models, transformer_configs, vision

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
FAMILIES = (vision, transformer_configs, own_models)


class UnknownModel(ValueError):
    """No model has this name, or the package that has it is not installed."""


@dataclass(frozen=True)
class Workload:
    """A model, and the keyword arguments of its calls."""

    model: torch.nn.Module
    make: Callable[[int, int, int | None], dict]  # of seed, batch and length
    batch: int
    length: int | None

    def inputs(self, seed, batch=None, length=None):
        return self.make(seed, batch or self.batch, length or self.length)


def _parse(name):
    """The bare name, its batch size and its length; None where the name does not say."""
    match = re.fullmatch(r"([^@]+)(?:@([1-9]\d*)(?:x([1-9]\d*))?)?", name)
    if match is None:
        raise UnknownModel(f"'{name}' is no name of a model; examples: resnet50, vit_l_16@32 (batch), bert@32x128 "
                           "(batch x length)")
    bare, batch, length = match.groups()
    return bare, batch and int(batch), length and int(length)


def _family_of(bare):
    known = {name: family for family in FAMILIES for name in family.names()}
    if bare in known:
        return known[bare]
    near = difflib.get_close_matches(bare, known, n=5, cutoff=0.5)
    hint = f"near matches: {', '.join(near)}" if near else "no name is near"
    absent = [package for family, package in ((vision, "torchvision"), (transformer_configs, "transformers"))
              if not family.names()]
    if absent:
        hint += f"; not installed: {', '.join(absent)}"
    raise UnknownModel(f"unknown model '{bare}'; {hint}")


def with_batch(name, batch):
    """The name of the same model, of the same length, at another batch size."""
    bare, _, length = _parse(name)
    return f"{bare}@{batch}" + (f"x{length}" if length else "")


def check_name(name):
    """Raises UnknownModel where `build` would."""
    _family_of(_parse(name)[0])


def build(name, device, dtype, batch):
    """The workload called `name`, in eval mode on `device`; `batch` counts where the name has none."""
    bare, own_batch, length = _parse(name)
    batch = own_batch or batch
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes of model code about initialisation, which is random here
        model, inputs = _family_of(bare).build(bare)
        make_every_weight_matter(model)
        calibrate_batch_norm(model, lambda: inputs(1000, 4, length))
    # Cast before the move: the device never sees the wider weights.
    model = model.to(DTYPES[dtype]).to(device)

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.to(DTYPES[dtype] if leaf.is_floating_point() else leaf.dtype).to(device)

    return Workload(model, lambda *shape: tree_map(place, inputs(*shape)), batch, length)


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
def calibrate_batch_norm(model, inputs):
    """Sets the running statistics from one pass over `inputs()`, as training would.

    With untrained ones the signal of a deep network dies out (MobileNet's output barely depends on the image) or
    overflows (Inception), and again a comparison proves nothing.
    """
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train().momentum = 1.0
    model(**inputs())
    for norm, momentum in zip(norms, momenta):
        norm.eval().momentum = momentum


def storage_bytes(tensors):
    """Bytes of the storages behind `tensors`, each storage counted once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())


def weights_bytes(model):
    return storage_bytes([*model.parameters(), *model.buffers()])
