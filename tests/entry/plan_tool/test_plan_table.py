"""scripts/plan_table on a folder of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILD = Path(os.environ.get("LIVEPOOL_BUILD_DIR", ROOT / "build" / "release"))
built = pytest.mark.skipif(not (BUILD / "bin" / "livepool-plan").is_file(), reason=f"{BUILD} has no livepool-plan")


def table(shared: Path, build: Path = BUILD) -> subprocess.CompletedProcess:
    environment = {**os.environ, "LIVEPOOL_SHARED": str(shared), "LIVEPOOL_BUILD_DIR": str(build)}
    return subprocess.run([ROOT / "scripts" / "plan_table", "1", "1000"], capture_output=True, text=True, timeout=60,
                          env=environment, check=False)


@built
def test_one_row_for_each_instance(tmp_path):
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "two.csv").write_text("id,lower,upper,size\n0,0,2,8\n1,2,4,9\n")
    done = table(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    cells = [cell.strip() for cell in done.stdout.splitlines()[2].strip("|").split("|")]
    # Whole slots do not grow: the larger buffer opens a second one.
    assert cells[:5] + cells[6:] == ["traces/two", "2", "9", "9", "1.0000", "true", "1.8889", "1.0000", "1.0000"]
    rows = [line.strip("|").split("|") for line in done.stdout.splitlines()[3:]]
    assert [(row[0].strip(), row[1].strip()) for row in rows] == [("random/1", "1000"), ("random/2", "1000"), ("random/3", "1000")]
    # Awks differ in their random numbers, so that the script has its own.
    assert rows[0][2].strip() == "68994233"


@built
def test_says_when_there_are_no_instances(tmp_path):
    done = table(tmp_path)
    assert done.returncode == 0
    assert "no instances" in done.stdout


def test_says_when_the_tool_is_not_built(tmp_path):
    done = table(tmp_path, tmp_path)
    assert done.returncode == 2
    assert "is not built" in done.stderr
