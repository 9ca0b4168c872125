"""livepool-plan as a user runs it: exit codes, messages, files."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILD = Path(os.environ.get("LIVEPOOL_BUILD_DIR", ROOT / "build" / "release"))
TOOL = BUILD / "bin" / "livepool-plan"
pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason=f"{TOOL} is not built; LIVEPOOL_BUILD_DIR names the build")

#   b and c follow each other beside a.
TRACE = "id,lower,upper,size\na,0,4,8\nb,0,2,5\nc,2,4,6\n"


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_prints_one_line(trace):
    done = run(trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 buffers in 14 bytes" in done.stdout
    assert "proved optimal" in done.stdout
    assert done.stdout.count("\n") == 1


def test_json_has_the_documented_keys(trace):
    report = json.loads(run(trace, "--json").stdout)
    assert list(report) == ["buffers", "lower_bound", "arena", "ratio", "seconds", "proved_optimal", "algorithm"]
    assert (report["buffers"], report["lower_bound"], report["arena"], report["ratio"]) == (3, 14, 14, 1.0)
    assert report["proved_optimal"] is True


def test_output_has_the_same_rows_with_offsets(trace, tmp_path):
    plan = tmp_path / "plan.csv"
    assert run(trace, "--output", plan).returncode == 0
    assert [row["id"] for row in rows(plan)] == ["a", "b", "c"]
    assert [{k: v for k, v in row.items() if k != "offset"} for row in rows(plan)] == rows(trace)
    assert run(trace, "--validate", plan).returncode == 0


def test_alignment_rounds_sizes_and_offsets(trace, tmp_path):
    plan = tmp_path / "plan.csv"
    report = json.loads(run(trace, "--alignment", 64, "--output", plan, "--json").stdout)
    assert (report["lower_bound"], report["arena"]) == (128, 128)
    assert {int(row["offset"]) % 64 for row in rows(plan)} == {0}
    assert [row["size"] for row in rows(plan)] == ["8", "5", "6"]


def test_capacity(trace):
    assert run(trace, "--capacity", 14).returncode == 0
    done = run(trace, "--capacity", 13)
    assert done.returncode == 1
    assert "no plan within 13 bytes" in done.stderr
    assert "no plan is lower" in done.stderr


def test_fixed_offsets_stay(tmp_path):
    trace, plan = tmp_path / "fixed.csv", tmp_path / "plan.csv"
    trace.write_text("id,lower,upper,size,offset\n1,0,4,8,8\n2,0,2,8,\n")
    assert run(trace, "--output", plan).returncode == 0
    assert [row["offset"] for row in rows(plan)] == ["8", "0"]


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (("0", "7", "8"), "overlap: "),
        (("0", "", "8"), "missing offset: 'b'"),
    ],
)
def test_validate_finds_what_is_wrong(trace, tmp_path, offsets, message):
    plan = tmp_path / "plan.csv"
    lines = TRACE.splitlines()
    plan.write_text("\n".join([lines[0] + ",offset", *(f"{a},{o}" for a, o in zip(lines[1:], offsets))]) + "\n")
    done = run(trace, "--validate", plan)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_validate_needs_every_row_and_the_column(trace, tmp_path):
    plan = tmp_path / "plan.csv"
    plan.write_text("id,lower,upper,size,offset\na,0,4,8,0\n")
    assert "no row for 'b'" in run(trace, "--validate", plan).stderr
    plan.write_text(TRACE)
    done = run(trace, "--validate", plan)
    assert (done.returncode, "column 'offset' is missing" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "1:1"),
        ("id,lower,upper\n", "1:1"),
        ("id,id,lower,upper,size\n", "1:4"),
        ("id,lower,upper,size\n1,0,4,8\n2,0,4,x\n", "3:7"),
        ("id,lower,upper,size\r\n1,0,4,0\r\n", "2:7"),
        ("id,lower,upper,size\n1,4,4,8\n", "2:5"),
        ("id,lower,upper,size\n1,0,4,8\n1,0,4,8\n", "3:1"),
        ("id,lower,upper,size\n1,0,4,9223372036854775807\n2,0,4,1\n", "3:7"),
        ("id,lower,upper,size\n" + "," * 1_000_000 + "\n", "2:5"),
    ],
)
def test_bad_input_names_file_line_and_column(tmp_path, text, where):
    path = tmp_path / "bad.csv"
    path.write_text(text, newline="")
    done = run(path)
    assert done.returncode == 2
    assert f"{path}:{where}: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_or_nothing_is_bad_input(tmp_path):
    for path in (tmp_path, tmp_path / "missing.csv"):
        done = run(path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert str(path) in done.stderr


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["--alignment", "0"], ["--threads", "x"], ["--capacity", "abc"], ["--time-limit", "nan"], []])
def test_bad_arguments(trace, arguments):
    done = run(trace, *arguments) if arguments else run()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_fixed_buffers_that_collide_name_the_file(tmp_path):
    trace = tmp_path / "clash.csv"
    trace.write_text("id,lower,upper,size,offset\n1,0,4,8,0\n2,0,4,8,4\n")
    done = run(trace)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{trace}: buffer 2: its fixed offset shares bytes with buffer 1" in done.stderr


def test_validate_within_a_capacity(trace, tmp_path):
    plan = tmp_path / "plan.csv"
    run(trace, "--output", plan)
    assert run(trace, "--validate", plan, "--capacity", 14).returncode == 0
    done = run(trace, "--validate", plan, "--capacity", 13)
    assert (done.returncode, "the plan is not within 13 bytes; it has 14" in done.stderr) == (1, True)
    done = run(trace, "--validate", plan, "--rule", "whole-slots")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_files_that_cannot_be_read_or_written(trace, tmp_path):
    for path in ("/dev/null", tmp_path):
        assert run(path).returncode == 2
    for option in ("--output", "--svg"):
        done = run(trace, option, "/dev/full")
        assert (done.returncode, "cannot be written" in done.stderr) == (2, True)


def test_files_that_cannot_be_written(trace, tmp_path):
    for option in ("--output", "--svg"):
        done = run(trace, option, tmp_path / "no" / "folder")
        assert (done.returncode, "cannot be written" in done.stderr) == (2, True)


def test_the_same_for_the_same_arguments(trace, tmp_path):
    plans = []
    for threads in (1, 3):
        plan = tmp_path / f"plan{threads}.csv"
        assert run(trace, "--seed", 7, "--nodes", 1000, "--threads", threads, "--output", plan).returncode == 0
        plans.append(plan.read_text())
    assert plans[0] == plans[1]


def test_svg_shows_every_buffer(trace, tmp_path):
    picture = tmp_path / "plan.svg"
    assert run(trace, "--svg", picture).returncode == 0
    titles = [e.text for e in ElementTree.parse(picture).iter() if e.tag.endswith("title")]
    assert sorted(title.split(":")[0] for title in titles) == ["a", "b", "c"]


def test_an_empty_trace(tmp_path):
    trace = tmp_path / "empty.csv"
    trace.write_text("id,lower,upper,size\n")
    report = json.loads(run(trace, "--json", "--svg", tmp_path / "empty.svg").stdout)
    assert (report["buffers"], report["arena"], report["ratio"]) == (0, 0, 1.0)
    ElementTree.parse(tmp_path / "empty.svg")


def test_help():
    done = run("--help")
    assert done.returncode == 0
    for option in ("--output", "--json", "--alignment", "--capacity", "--time-limit", "--threads", "--seed",
                   "--validate", "--svg"):
        assert option in done.stdout
