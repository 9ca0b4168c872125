"""livepool.set_memory_limit and LIVEPOOL_MEMORY_LIMIT, as far as they need no GPU. Each test in its own process."""

import os
import subprocess
import sys

import pytest

livepool = pytest.importorskip("livepool", reason="the Python module is not built", exc_type=ImportError)

needs_cuda_build = pytest.mark.skipif(not livepool._livepool.has_cuda, reason="this build has no CUDA")


def run(program, **variables):
    folder = os.path.dirname(os.path.dirname(livepool.__file__))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]), **variables)
    result = subprocess.run([sys.executable, "-c", "import livepool\n" + program], env=env, capture_output=True, text=True,
                            timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, result.stderr


@needs_cuda_build
def test_set_and_read_back_before_install():
    out, _ = run(
        "print(livepool.memory_limit())\n"
        "for limit in ('8GiB', 1000, '1.5 MiB', None):\n"
        "    livepool.set_memory_limit(limit); print(livepool.memory_limit())"
    )
    assert out.split() == ["None", str(8 << 30), "1000", str(3 << 19), "None"]


@needs_cuda_build
def test_variable_sets_it():
    out, err = run("print(livepool.memory_limit())", LIVEPOOL_MEMORY_LIMIT="512MiB")
    assert out.strip() == str(512 << 20) and err == ""


@needs_cuda_build
def test_bad_variable_is_one_line_and_the_program_runs():
    out, err = run("print(livepool.memory_limit())", LIVEPOOL_MEMORY_LIMIT="8 gigabytes")
    assert out.strip() == "None"
    assert err.splitlines() == [
        "livepool: LIVEPOOL_MEMORY_LIMIT=8 gigabytes is ignored: use a number of bytes, or of KiB, MiB, GiB or TiB, as in 8GiB"
    ]


@pytest.mark.parametrize("limit", ["8GB", "", "lots", -1])
def test_what_is_no_size_is_refused(limit):
    with pytest.raises(livepool.InvalidInput):
        livepool.set_memory_limit(limit)


@pytest.mark.skipif(livepool._livepool.has_cuda, reason="this build has CUDA")
def test_a_build_without_cuda_says_so():
    assert livepool.memory_limit() is None
    with pytest.raises(livepool.Error, match="without CUDA"):
        livepool.set_memory_limit("8GiB")


def test_trim_without_arenas_frees_nothing():
    out, _ = run("livepool.install('cpu'); print(livepool.trim(), livepool.stats()['live_bytes'], livepool.stats()['refused'])")
    assert out.split() == ["0", "0", "0"]
