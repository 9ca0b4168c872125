"""scripts/lib/summarise.py: the closing line of scripts/test, and that a bad end is never a good one."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "lib" / "summarise.py"

CTEST = """<testsuite tests="4" failures="1" skipped="2">
<testcase name="Plan.Fits" classname="Plan.Fits" status="run"/>
<testcase name="Plan.Bad" classname="Plan.Bad" status="fail"><failure message=""/></testcase>
<testcase name="Pool.Gpu" classname="Pool.Gpu" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN ] Pool.Gpu
pool_test.cc:12: Skipped
no CUDA device here

[  SKIPPED ] Pool.Gpu</system-out></testcase>
<testcase name="Pool.Off" classname="Pool.Off" status="disabled"/>
</testsuite>"""
PYTEST = """<testsuites><testsuite>
<testcase classname="tests.test_x" name="test_one"/>
<testcase classname="tests.test_x" name="test_two"><skipped type="pytest.skip" message="needs numpy"/></testcase>
<testcase classname="tests.test_x" name="test_three"><error message="fixture"/></testcase>
</testsuite></testsuites>"""
GOOD = '<testsuite><testcase name="a"/><testcase name="b"/></testsuite>'


def summarise(tmp_path, ctest, pytest, codes=("0", "0"), extra=()):
    arguments = []
    for name, code, text in zip(("ctest", "pytest"), codes, (ctest, pytest)):
        path = tmp_path / f"{name}.xml"
        if text is not None:
            path.write_text(text)
        arguments += [name, code, str(path)]
    result = subprocess.run([sys.executable, SCRIPT, *extra, *arguments], capture_output=True, text=True, check=False)
    assert result.stderr == ""
    return result.returncode, result.stdout.splitlines()


def test_both_runners_are_summed_up_and_skips_have_reasons(tmp_path):
    code, lines = summarise(tmp_path, CTEST, PYTEST, codes=("8", "1"))
    assert code == 1
    assert lines[-3:] == ["ctest: 1 passed, 1 failed, 2 skipped", "pytest: 1 passed, 1 failed, 1 skipped",
                          "2 passed, 2 failed, 3 skipped"]
    assert "skipped, ctest: Pool.Gpu.Pool.Gpu: no CUDA device here" not in lines
    assert "skipped, ctest: Pool.Gpu: no CUDA device here" in lines
    assert "skipped, ctest: Pool.Off: disabled" in lines
    assert "skipped, pytest: tests.test_x.test_two: needs numpy" in lines


def test_all_good(tmp_path):
    code, lines = summarise(tmp_path, GOOD, GOOD)
    assert code == 0 and lines[-1] == "4 passed, 0 failed, 0 skipped"


def test_cases_left_out_count_as_skipped(tmp_path):
    code, lines = summarise(tmp_path, GOOD, GOOD, extra=("--left-out", "12"))
    assert code == 0 and lines[-1] == "4 passed, 0 failed, 12 skipped"
    assert any("12 cases labelled gpu" in line for line in lines)


def test_a_runner_that_could_not_run_is_skipped_with_its_reason(tmp_path):
    code, lines = summarise(tmp_path, GOOD, GOOD, extra=("--not-run", "tsan: no room"))
    assert code == 0 and lines[-1] == "4 passed, 0 failed, 1 skipped"
    assert "skipped, tsan: no room" in lines


def test_a_runner_that_ends_badly_is_a_failure(tmp_path):
    code, lines = summarise(tmp_path, GOOD, None, codes=("0", "2"))
    assert code == 1 and lines[-1] == "2 passed, 1 failed, 0 skipped"
    code, lines = summarise(tmp_path, GOOD, GOOD, codes=("8", "0"))
    assert code == 1 and lines[-1] == "4 passed, 1 failed, 0 skipped"


def test_a_runner_that_left_no_file_is_a_failure(tmp_path):
    code, lines = summarise(tmp_path, None, GOOD)
    assert code == 1 and lines[-1] == "2 passed, 1 failed, 0 skipped"


def test_no_test_at_all_is_a_failure(tmp_path):
    empty = "<testsuite></testsuite>"
    code, lines = summarise(tmp_path, empty, empty)
    assert code == 1 and lines[-1].startswith("0 passed, 2 failed")
