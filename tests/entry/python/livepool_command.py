"""The `livepool` command with the compiled module, in a process of its own."""

import os
import subprocess
import sys

import pytest


def skip_if_not_built():
    try:
        import livepool  # noqa: F401
    except ImportError as error:
        pytest.skip(f"livepool is not built for this interpreter: {error}")


def run(*args, timeout=600, **environment):
    """`python -m livepool ARGS`, with these variables."""
    import livepool

    package = os.path.dirname(os.path.dirname(livepool.__file__))
    environ = {**os.environ, "PYTHONPATH": package + os.pathsep + os.environ.get("PYTHONPATH", ""), **environment}
    return subprocess.run([sys.executable, "-m", "livepool", *args], env=environ, capture_output=True, text=True, timeout=timeout,
                          check=False)
