"""Puts livepool's allocator in place when torch has been imported, in a program that knows nothing of livepool.

livepool.pth, beside this file, imports it when an interpreter starts with LIVEPOOL=1; nothing else does. It imports
neither torch nor livepool until the program itself imports torch, and whatever goes wrong then, `import torch` succeeds
and one line on stderr says why livepool is not active.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys


class _ThenInstall(importlib.abc.Loader):
    """torch's own loader; puts itself away before torch's code runs."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        install()


class _Torch(importlib.abc.MetaPathFinder):
    """Finds torch once, as the finders behind it do."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenInstall(spec.loader)
        return spec


def install() -> None:
    """Installs livepool for the CPU; never raises, but for KeyboardInterrupt and the like."""
    try:
        # Not livepool.install: livepool may be what imports torch, and be half imported itself.
        importlib.import_module("livepool._livepool").install("cpu")
    except Exception as error:  # noqa: BLE001  (another torch, a missing library: the program runs on)
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        print(f"livepool: not active: {why}; the program runs with PyTorch's own allocator", file=sys.stderr)


def watch() -> None:
    """Has install() called once torch is imported; at once if it is already."""
    if os.environ.get("LIVEPOOL") != "1":
        return
    if "torch" in sys.modules:
        install()
    else:
        sys.meta_path.insert(0, _Torch())
