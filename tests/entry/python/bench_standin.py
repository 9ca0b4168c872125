"""Runs livepool's Python command line without the compiled module.

A copy of the package's command line is laid into a folder beside a stand-in `__init__.py`, whose `capture` keeps the
callable and whose `replay` runs it. What the stand-in returns can be spoiled through the environment.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "entry" / "python" / "livepool"

STAND_IN = '''
import os

__version__ = "0.0-standin"


class Error(Exception):
    pass


class CaptureRefused(Error):
    pass


class GuardFailed(Error):
    pass


def wrap(model, **options):
    if os.environ.get("STANDIN_SPOIL") == "refused and wrong":
        forward = model.forward
        model.forward = lambda *args, **kwargs: forward(*args, **kwargs) * 2
    return model


def unwrap(model):
    model.__dict__.pop("forward", None)


_active = False


def install(device):
    global _active
    if os.environ.get("STANDIN_SPOIL") == "install":
        raise Error("unsupported torch version 9.9")
    _active = True


def stats():
    return {"active": _active, "hits": 0, "misses": 0, "arena_bytes": 0}


class Graph:
    def __init__(self, fn):
        self.fn, self.replays = fn, 0

    def replay(self, *args, **kwargs):
        from torch.utils._pytree import tree_map

        self.replays += 1
        out = self.fn(*args, **kwargs)
        spoil = os.environ.get("STANDIN_SPOIL")
        if spoil == "guard" and self.replays >= 2:
            raise GuardFailed("aten::nonzero gave sizes [3] at capture and [4] now")
        if spoil == "replay":
            out = tree_map(lambda t: t + 0.5, out)
        if spoil == "second replay" and self.replays >= 2:
            out = tree_map(lambda t: t * float("nan"), out)
        return out

    def report(self):
        hits = 0 if os.environ.get("STANDIN_SPOIL") == "hits" else 7 * self.replays
        return {"ops": 3, "buffers": 8, "sum_bytes": 4 << 20, "eager_live_peak_bytes": 2 << 20,
                "lower_bound_bytes": 1 << 20, "arena_bytes": 1 << 20, "hits": hits, "misses": self.replays}


def capture(fn, *args, **kwargs):
    if os.environ.get("STANDIN_SPOIL", "").startswith("refused"):
        raise CaptureRefused("torchvision::nms has sizes that depend on data\\nsecond line")
    if os.environ.get("STANDIN_SPOIL") == "capture":
        raise Error("aten::bernoulli is not captured\\nsecond line")
    if os.environ.get("STANDIN_FILL_IS"):
        assert os.environ["LIVEPOOL_FILL"] == os.environ["STANDIN_FILL_IS"]
    fn(*args, **kwargs)
    return Graph(fn)
'''


def lay(folder):
    """Makes `folder/livepool`, and returns `folder`."""
    package = Path(folder) / "livepool"
    package.mkdir(parents=True)
    for name in ("cli.py", "restart.py", "__main__.py"):
        shutil.copy(SOURCE / name, package)
    shutil.copytree(SOURCE / "bench", package / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text(STAND_IN)
    return Path(folder)


def run(folder, *args, **environment):
    """`python -m livepool ARGS` on the stand-in, on the CPU, with one thread: other tests may run beside it."""
    quiet = {"PYTHONPATH": str(folder), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    environ = {**os.environ, **quiet, **environment}
    return subprocess.run([sys.executable, "-m", "livepool", *args], capture_output=True, text=True, env=environ,
                          cwd=folder, timeout=300, check=False)
