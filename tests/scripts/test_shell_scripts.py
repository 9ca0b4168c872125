"""The shell scripts: syntax, shellcheck where there is one, and the parts of scripts/lib/setup.sh that decide."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = [ROOT / "scripts" / name for name in ("demo", "test", "gpu-test", "python", "eager_table", "plan_table")] + [ROOT / ".ci" / "run"]
PARTS = [ROOT / "scripts" / "lib" / name for name in ("setup.sh", "tests.sh")]


def bash(script, **environment):
    return subprocess.run(["bash", "-c", f"set -euo pipefail; source '{ROOT}/scripts/lib/setup.sh'; "
                                         f"source '{ROOT}/scripts/lib/tests.sh'; {script}"],
                          capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize("script", COMMANDS, ids=lambda path: path.name)
def test_commands_can_be_run_and_stop_at_errors(script):
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in script.read_text()


@pytest.mark.parametrize("script", COMMANDS + PARTS, ids=lambda path: path.name)
def test_syntax(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


@pytest.mark.parametrize("script", COMMANDS + PARTS, ids=lambda path: path.name)
def test_shellcheck(script):
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    result = subprocess.run(["shellcheck", "-x", "-s", "bash", script], capture_output=True, text=True, cwd=ROOT,
                            check=False)
    assert result.returncode == 0, result.stdout


def test_an_unknown_argument_is_refused_at_once():
    result = subprocess.run(["bash", ROOT / "scripts" / "test", "--fast"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "livepool: scripts/test: unknown argument --fast; the only one is --no-sanitizers\n"


def test_a_sanitizer_that_does_not_run_is_left_out_with_its_reason(tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho 'unexpected memory mapping' >&2\nexit 1\n")
    compiler.chmod(0o755)
    result = bash("sanitizer_lacks tsan", CXX=str(compiler))
    assert result.returncode == 1
    assert result.stdout == "a program built with -fsanitize=thread does not run here: unexpected memory mapping\n"


# The runners' parts stand for programs: what is run, with which arguments, and that all run though one fails.
RUN_TESTS = """
say() { :; }; build_jobs() { echo 1; }; nproc() { echo 1; }
ROOT='{folder}'; BUILD='{folder}/build'; RESULTS='{folder}/results'; PYTHONPATH=; PYTHON=python_stub
ctest() { echo "ctest $*"; [[ "$*" != *asan-core* ]]; }
cmake() { echo "cmake $*"; }
python_stub() { echo "python $*"; }
sanitizer_lacks() { [[ "$1" != tsan ]] || { echo "no room"; return 1; }; }
run_tests no-gpu asan tsan
"""


def test_all_runners_run_and_are_summed_up(tmp_path):
    result = bash(RUN_TESTS.replace("{folder}", str(tmp_path)))
    lines = result.stdout.splitlines()
    assert any("-m pytest" in line for line in lines)
    assert any(line.startswith(f"ctest --test-dir {tmp_path}/build/asan-core -LE ^gpu$") for line in lines)
    assert not any("tsan-core" in line for line in lines)
    summary = lines[-1]
    assert "--not-run tsan: no room" in summary
    assert f"asan 1 {tmp_path}/results/asan.xml" in summary, "expected: its bad end is handed on"
    assert f"ctest 0 {tmp_path}/results/ctest.xml" in summary


def test_gpu_test_without_a_gpu_is_one_line_and_exit_code_2():
    if bash("livepool_has_gpu").returncode == 0:
        pytest.skip("this machine has a GPU")
    result = subprocess.run(["bash", ROOT / "scripts" / "gpu-test"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "livepool: scripts/gpu-test needs an NVIDIA GPU, and this machine shows none\n"


@pytest.mark.parametrize(("version", "good"), [("3.25.1", True), ("3.31.6", True), ("4.1.0", True), ("3.24.9", False),
                                              ("3.5.0", False)])
def test_versions_of_cmake(tmp_path, version, good):
    fake = tmp_path / "cmake"
    fake.write_text(f"#!/bin/sh\necho 'cmake version {version}'\necho\n")
    fake.chmod(0o755)
    result = bash("has_cmake_3_25", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (result.returncode == 0) is good


def test_headers_are_found_by_the_compiler_or_in_a_prefix(tmp_path):
    assert bash("has_header vector").returncode == 0
    assert bash("has_header livepool_no_such_header.h").returncode != 0
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "livepool_no_such_header.h").touch()
    assert bash("has_header livepool_no_such_header.h", CMAKE_PREFIX_PATH=f"/none:{tmp_path}").returncode == 0


def test_the_stamp_holds_for_the_same_requirements_only(tmp_path):
    stamp = f"STAMP='{tmp_path}/stamp'; "
    write = stamp + f"printf '%s\\n%s\\n' \"$(requirements_hash)\" '{sys.executable}' >\"$STAMP\""
    assert bash(stamp + "use_stamp").returncode != 0
    assert bash(write).returncode == 0
    good = bash(stamp + "use_stamp && echo \"$PYTHON\"")
    assert (good.returncode, good.stdout.strip()) == (0, sys.executable), good.stderr
    assert bash(stamp + "use_stamp", CXX="another-compiler").returncode != 0
    (tmp_path / "stamp").write_text((tmp_path / "stamp").read_text().replace(sys.executable, "/no/such/python"))
    assert bash(stamp + "use_stamp").returncode != 0


def test_an_interpreter_without_torch_is_not_taken(tmp_path):
    result = bash(f"python_lacks '{sys.executable}' -S", PYTHONPATH=str(tmp_path))
    assert result.stdout.strip() == "", "the interpreter of the tests has everything"
    isolated = tmp_path / "python"
    isolated.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    isolated.chmod(0o755)
    result = bash(f"python_will_do '{isolated}'")
    assert result.returncode == 1, "torch is missing, so that nothing is installed beside it"


def test_jobs_are_at_least_one_and_at_most_the_cores():
    assert 1 <= int(bash("build_jobs").stdout) <= len(os.sched_getaffinity(0))


def test_packages_that_cannot_be_installed_are_a_warning_only(tmp_path):
    for name, text in (("apt-get", "exit 100"), ("sudo", 'shift; exec "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    result = bash("apt_install libsomething-dev; echo went on", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (result.returncode, result.stdout) == (0, "went on\n")
    assert "warning: these could not be installed: libsomething-dev" in result.stderr
