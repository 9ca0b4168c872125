"""scripts/check_docs.py passes on the repository's documents, and fails on made-up ones."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "check_docs.py"


def check(root):
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path):
    for path in ("allocator/plan/plan.cc", "allocator/plan/plan.h", "docs/walkthrough.md", "scripts/demo", "README.md"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return tmp_path


def test_the_documents_of_the_repository():
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("text", [
    "`allocator/plan/plan.cc`, `allocator/plan/plan.cc:12`, `allocator/plan/`, `./scripts/demo --device cuda`",
    "`allocator/plan/plan.{h,cc}` and `allocator/plan/*.h`",
    "`aten/native` and `a/b` and `docs` and `https://example.com/docs/x` are no paths of the tree",
    "```sh\nscripts/demo --models resnet50\n```",
    "allocator/plan/gone.cc without backticks is prose",
    "`allocator/<layer>/x.h` stands for many",
])
def test_sound_text(repository, text):
    (repository / "README.md").write_text(text)
    result = check(repository)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("text", "path"), [
    ("`allocator/plan/gone.cc`", "allocator/plan/gone.cc"),
    ("see `scripts/gone` there", "scripts/gone"),
    ("`allocator/plan/plan.{h,hpp}`", "allocator/plan/plan.hpp"),
    ("`allocator/plan/*.cu`", "allocator/plan/*.cu"),
    ("`allocator/plan/gone.cc:12`.", "allocator/plan/gone.cc"),
    ("```sh\n$ scripts/gone --fast\n```", "scripts/gone"),
    ("`tests/gone_test.cc`", "tests/gone_test.cc"),
])
@pytest.mark.parametrize("document", ["README.md", "docs/walkthrough.md"])
def test_a_path_that_is_gone(repository, document, text, path):
    (repository / document).write_text(f"first\n{text}\n")
    result = check(repository)
    assert result.returncode == 1
    assert result.stdout.startswith(f"{document}:{3 if '```' in text else 2}: `{path}` does not exist")


def test_the_length_of_the_readme(repository):
    (repository / "README.md").write_text("line\n" * 150)
    assert check(repository).returncode == 0
    (repository / "README.md").write_text("line\n" * 151)
    result = check(repository)
    assert result.returncode == 1
    assert "README.md has 151 lines, more than 150" in result.stdout


def test_no_readme(repository):
    (repository / "README.md").unlink()
    result = check(repository)
    assert result.returncode == 1
    assert "README.md:1: is missing" in result.stdout
