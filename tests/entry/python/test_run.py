"""`livepool run`, and livepool_startup, which LIVEPOOL=1 starts through a .pth file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "entry" / "python"


def run(*command, path=(), **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LIVEPOOL")}
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, path), *(each for each in sys.path if each)])
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300,
                          env={**environment, **variables}, check=False)


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "app.py"
    file.write_text("import sys, beside\nprint(__name__, sys.argv[1:], sys.path[0], beside.VALUE)\n"
                    "import livepool; print(livepool.stats()['eager_code']['active'])\nsys.exit(5)\n")
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    return file


def test_a_script_runs_as_python_would_run_it(livepool, program):
    done = run("-m", "livepool", "run", program, "--report", "-x")
    assert done.returncode == 5, done.stderr
    assert done.stdout == f"__main__ ['--report', '-x'] {program.parent} 3\nTrue\n"


def test_a_module_runs_as_python_would_run_it(livepool, program):
    done = run("-m", "livepool", "run", "-m", "app", "y", path=[program.parent])
    assert done.returncode == 5, done.stderr
    assert done.stdout.startswith("__main__ ['y']")


def test_switched_off_it_only_runs_the_program(livepool, program):
    done = run("-m", "livepool", "run", program, LIVEPOOL="0")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (5, "False")


@pytest.mark.parametrize(("args", "says"), [
    ([], "no program is named"),
    (["-m"], "no module is named"),
    (["--frobnicate", "app.py"], "unrecognized option --frobnicate"),
    (["--report"], "--report needs a file"),
    (["/no/such/app.py"], "/no/such/app.py: no such file"),
])
def test_a_mistake_is_one_line_and_exit_code_2(livepool, args, says):
    done = run("-m", "livepool", "run", *args)
    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def startup(tmp_path):
    """A folder with livepool_startup alone: the package is the built one."""
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(SOURCES / "livepool_startup.py", folder)
    return folder


STARTUP = "import livepool_startup; livepool_startup.watch()\n"


def test_a_program_that_imports_torch_gets_livepool(livepool, startup):
    code = STARTUP + """
import sys
assert "torch" not in sys.modules and "livepool" not in sys.modules
import torch
assert torch.__loader__ is torch.__spec__.loader and type(torch.__loader__).__module__ != "livepool_startup"
import livepool
print(livepool.stats()["eager_code"]["active"])
"""
    done = run("-c", code, path=[startup], LIVEPOOL="1")
    assert done.stdout == "True\n", done.stderr


def test_a_program_that_imports_livepool_first_gets_it_too(livepool, startup):
    code = STARTUP + "import livepool\nprint(livepool.stats()['eager_code']['active'])"
    done = run("-c", code, path=[startup], LIVEPOOL="1")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_without_livepool_torch_is_imported_all_the_same(tmp_path, startup):
    broken = tmp_path / "livepool"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise OSError('libsomething.so: undefined symbol')\n")
    done = run("-c", STARTUP + "import torch; print(torch.ones(2).sum().item())", path=[tmp_path, startup], LIVEPOOL="1")
    assert done.stdout == "2.0\n"
    assert done.stderr == ("livepool: not active: libsomething.so: undefined symbol; the program runs with PyTorch's own "
                           "allocator\n")


def test_without_torch_the_error_is_pythons_own(tmp_path):
    done = subprocess.run([sys.executable, "-I", "-S", "-c",
                           f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n" + STARTUP +
                           "try:\n  import torch\nexcept ModuleNotFoundError as e:\n  print(e)"],
                          capture_output=True, text=True, env={"LIVEPOOL": "1"}, check=False)
    assert done.stdout == "No module named 'torch'\n", done.stderr


@pytest.mark.parametrize(("value", "imported"), [("1", "True"), ("0", "False"), (None, "False")])
def test_the_pth_file_does_something_with_livepool_1_only(tmp_path, value, imported):
    site = tmp_path / "site"
    site.mkdir()
    for name in ("livepool.pth", "livepool_startup.py"):
        shutil.copy(SOURCES / name, site)
    code = f"import site, sys; site.addsitedir({str(site)!r}); print('livepool_startup' in sys.modules)"
    done = run("-c", code, **({"LIVEPOOL": value} if value else {}))
    assert (done.stdout, done.stderr) == (imported + "\n", "")
