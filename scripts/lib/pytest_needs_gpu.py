"""A pytest plugin: a test marked `gpu` is skipped, with its reason, where torch sees no CUDA device."""

import pytest


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; scripts/gpu-test runs it"))
