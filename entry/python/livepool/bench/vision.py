"""Models of torchvision by their names there: classification, segmentation, video, detection."""

import importlib.util

import torch

FRAMES = 16
IMAGE_SIZE = 224


def _kinds():
    from torchvision import models

    return {"classification": models, "segmentation": models.segmentation, "video": models.video,
            "detection": models.detection}


def _names_of(kind):
    import torchvision

    return torchvision.models.list_models(module=_kinds()[kind])


def names():
    """All names; none where torchvision is not installed."""
    if importlib.util.find_spec("torchvision") is None:
        return []
    return [name for kind in _kinds() for name in _names_of(kind)]


def build(name):
    """The model, and `inputs(seed, batch, length)`; `length` is the side of the images, in pixels."""
    import torchvision

    kind = next(kind for kind in _kinds() if name in _names_of(kind))
    options = {"weights_backbone": None} if kind in ("segmentation", "detection") else {}
    if kind == "detection":
        # Every box counts, as random weights are sure of none.
        options["box_score_thresh" if "rcnn" in name else "score_thresh"] = 0.0
        if not name.startswith("ssd"):  # these have one size, the others would enlarge the images
            options |= {"min_size": IMAGE_SIZE, "max_size": IMAGE_SIZE}
    model = torchvision.models.get_model(name, weights=None, **options).eval()

    def inputs(seed, batch, length):
        side = length or IMAGE_SIZE
        shape = (3, FRAMES, side, side) if kind == "video" else (3, side, side)
        images = torch.randn(batch, *shape, generator=torch.Generator().manual_seed(seed))
        return {"images": list(images)} if kind == "detection" else {_first_argument(model): images}

    return model, inputs


def _first_argument(model):
    import inspect

    return next(iter(inspect.signature(model.forward).parameters))
