"""LD_PRELOAD: programs without torch are left alone, programs with torch get livepool."""

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("LIVEPOOL_BUILD_DIR", ROOT / "build" / "release"))
PRELOAD = BUILD / "lib" / "liblivepool_preload.so"
LIBRARY = BUILD / "lib" / "liblivepool_torch.so"

pytestmark = pytest.mark.skipif(not PRELOAD.exists(), reason=f"{PRELOAD} is not built")


def run(*command, preload=PRELOAD, **variables):
    # The test run's own settings are not the program's.
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIVEPOOL")}
    env.update(variables)
    if preload is not None:
        env["LD_PRELOAD"] = str(preload)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


def python(program, **arguments):
    return run(sys.executable, "-c", textwrap.dedent(program), **arguments)


SCRIPT = """#!/bin/sh
echo "$0" has $# arguments | cat
for word in "$@"; do (echo "$word" >&2) & wait $!; done
/bin/false || exit 7
"""


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/true"],
        ["/bin/false"],
        ["bash", "-c", "echo out; echo err >&2; exit 7"],
        ["bash", "-c", "kill -TERM $$"],
        ["SCRIPT", "a b", "c"],
        [sys.executable, "-c", "pass"],
        [sys.executable, "-c", "print('hello')"],
        [sys.executable, "-c", "raise SystemExit(3)"],
        [sys.executable, "-c", "import subprocess; subprocess.run(['bash', '-c', 'echo child; exit 4'], check=True)"],
        ["nvidia-smi", "-L"],
    ],
    ids=lambda command: " ".join(Path(command[0]).name if i == 0 else word for i, word in enumerate(command)),
)
def test_programs_without_torch_are_unchanged(command, tmp_path):
    """Field fault 11: output and exit code, of the program and of those that it starts."""
    if shutil.which(command[0]) is None and command[0] != "SCRIPT":
        pytest.skip(f"{command[0]} is not installed")
    script = tmp_path / "script"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    command = [str(script) if word == "SCRIPT" else word for word in command]
    plain = run(*command, preload=None)
    preloaded = run(*command)
    assert (preloaded.returncode, preloaded.stdout, preloaded.stderr) == (plain.returncode, plain.stdout, plain.stderr)


@pytest.mark.parametrize("command", [["/bin/true"], ["sh", "-c", ":"], [sys.executable, "-S", "-c", "pass"]],
                         ids=lambda command: Path(command[0]).name)
def test_programs_without_torch_are_not_delayed(command):
    """Field fault 11: the loader maps one small library."""
    fastest = {None: float("inf"), PRELOAD: float("inf")}
    for _ in range(30):  # in turns, as the machine may be busy
        for preload in fastest:
            start = time.perf_counter()
            run(*command, preload=preload)
            fastest[preload] = min(fastest[preload], time.perf_counter() - start)
    assert fastest[PRELOAD] - fastest[None] < 0.005 + 0.2 * fastest[None], fastest


def test_links_to_nothing_but_libc():
    listing = run("readelf", "-d", str(PRELOAD), preload=None).stdout
    needed = [line.split("[")[1].split("]")[0] for line in listing.splitlines() if "(NEEDED)" in line]
    assert needed
    assert {name for name in needed if not name.startswith(("libc.so", "libdl.so", "ld-linux"))} == set()


def test_exports_the_interposed_functions_alone():
    listing = run("nm", "-D", "--defined-only", str(PRELOAD), preload=None).stdout
    assert sorted(line.split()[-1] for line in listing.splitlines()) == [
        "_ZN3c1015GetCPUAllocatorEv",
        "_ZN3c104cuda28device_count_ensure_non_zeroEv",
    ]


STATUS = f"""
import ctypes
library = ctypes.CDLL({str(LIBRARY)!r})
print("cpu", library.livepool_installed(b"cpu"), "cuda", library.livepool_installed(b"cuda"))
"""

FORWARD = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5))
with torch.inference_mode():
    print(model.eval()(torch.randn(2, 3, 8, 8)).numpy().tobytes().hex())
"""


def test_installs_at_the_first_cpu_tensor():
    result = python("import torch; torch.ones(3)\n" + STATUS)
    assert (result.returncode, result.stdout, result.stderr) == (0, "cpu 1 cuda 0\n", "")


def test_results_are_equal():
    plain = python(FORWARD, preload=None)
    preloaded = python(FORWARD)
    assert plain.returncode == 0 and len(plain.stdout) > 1
    assert (preloaded.returncode, preloaded.stdout, preloaded.stderr) == (0, plain.stdout, plain.stderr)


def test_tensors_alive_at_exit_do_no_harm():
    """Field fault 13."""
    result = python(
        """
        import builtins, threading, torch
        builtins.kept = [torch.ones(1000) for _ in range(10)]
        kept_too = torch.ones(1000)
        threading.Thread(target=lambda: builtins.kept.append(torch.ones(1000))).start()
        """
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_many_threads_at_the_first_call():
    result = python(
        """
        import threading, torch
        start = threading.Barrier(16)
        sums = []
        def work():
            start.wait()
            sums.append(sum(float(torch.ones(100 + i).sum()) for i in range(50)))
        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert sums == [sum(100.0 + i for i in range(50))] * 16
        """
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_livepool_0_leaves_torch_alone():
    result = python("import torch; torch.ones(3)\n" + STATUS, LIVEPOOL="0")
    assert (result.returncode, result.stdout) == (0, "cpu 0 cuda 0\n")


def test_without_its_library_the_program_runs_and_says_so(tmp_path):
    alone = tmp_path / PRELOAD.name
    alone.write_bytes(PRELOAD.read_bytes())
    result = python("import torch; print(torch.ones(3).sum().item())", preload=alone)
    assert (result.returncode, result.stdout) == (0, "3.0\n")
    assert len(result.stderr.splitlines()) == 1
    assert "livepool: not active for cpu" in result.stderr and "liblivepool_torch.so" in result.stderr


@pytest.mark.parametrize(
    "program, switch, said",
    [
        ("import torch; torch.ones(3)", "1", "livepool: cpu active, cuda not used\n"),
        ("import torch; torch.ones(3)", "0", "livepool: cpu off (LIVEPOOL=0), cuda not used\n"),
        ("pass", "1", ""),
    ],
)
def test_says_at_exit_whether_it_was_active(program, switch, said):
    """Field fault 12."""
    lines = python(program, LIVEPOOL=switch, LIVEPOOL_LOG="info").stderr.splitlines(keepends=True)
    # With LIVEPOOL=1 what was served is said as well.
    assert "".join(line for line in lines if "served from plans" not in line) == said


def test_exceptions_pass_through():
    result = python(
        """
        import torch
        if torch.cuda.is_available():
            raise SystemExit(0)
        try:
            torch._C._cuda_init()
        except (RuntimeError, AttributeError) as error:
            print(type(error).__name__)
        """,
        CUDA_VISIBLE_DEVICES="",
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.gpu
def test_installs_when_cuda_starts_and_statistics_are_right():
    result = python(
        """
        import torch
        torch.ones(1)
        before = torch.cuda.memory_allocated()
        x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        print(torch.cuda.memory_allocated() - before, torch.cuda.memory_reserved() >= 1 << 20)
        del x
        print(torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() >= 1 << 20)
        """
        + textwrap.indent(STATUS, "        ")
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [f"{1 << 20} True", "0 True", "cpu 1 cuda 1"]
    assert result.stderr == ""


@pytest.mark.gpu
def test_tensors_alive_at_exit_do_no_harm_on_cuda():
    result = python("import builtins, torch; builtins.kept = torch.ones(1000, device='cuda')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
