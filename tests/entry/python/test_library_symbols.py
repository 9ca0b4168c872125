"""What our shared libraries show to the rest of the process."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_no_copy_of_the_cpp_runtime_is_exported(livepool):
    """A toolchain may link the C++ runtime statically. Were that copy visible, calls from our code would end in it with
    facets of torch's own copy, and a number in a message would crash."""
    module = Path(livepool._livepool.__file__)
    for library in (module, *(module.parents[2] / "lib").glob("liblivepool_*.so")):
        symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        streams = [line for line in symbols.splitlines() if line.split()[-1].startswith(("_ZNSo", "_ZNSi", "_ZNSt6locale"))]
        assert streams == [], library
