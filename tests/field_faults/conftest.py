"""What the field-faults suite shares: programs that run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PRELUDE = """
import sys, threading, torch, livepool
livepool.install({device!r})
torch.set_grad_enabled(False)
torch.set_num_threads(1)
DEVICE = torch.device({device!r})
def network(x): return ((x @ x).relu() + x).softmax(-1) @ x
def ones(n, value=1.0): return torch.full((n, n), float(value), device=DEVICE)
"""


@pytest.fixture
def program(livepool):
    """program(text, device="cpu", **environment) runs it with livepool installed, in a new process; expects exit code
    0 and nothing on stderr, and returns what it printed."""
    folder = str(Path(livepool._livepool.__file__).absolute().parents[1])

    def run(text: str, device: str = "cpu", **environment: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("LIVEPOOL")}
        env |= {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", **environment}
        result = subprocess.run([sys.executable, "-c", PRELUDE.format(device=device) + textwrap.dedent(text)],
                                env=env, capture_output=True, text=True, timeout=300, check=False)
        assert (result.returncode, result.stderr) == (0, ""), f"exit code {result.returncode}\n{result.stderr}"
        return result.stdout

    return run
