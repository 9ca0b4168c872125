#!/usr/bin/env python3
"""Checks the documents against the tree: README.md and docs/*.md.

    check_docs.py [ROOT]

Every path in backticks that starts with a top-level folder of the repository exists (`allocator/plan/{a,b}.h` and
`tests/*.cc` stand for several; what follows a `:` is a line), and README.md has at most 150 lines.
Prints `file:line: message`; exits with 1 where a rule is broken.
"""

import re
import sys
from pathlib import Path

README_LINES = 150
FOLDERS = ("allocator", "eager", "graph_capture", "entry", "tests", "scripts", "cmake", "docs", ".ci")
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(rf"^(?:{'|'.join(re.escape(folder) for folder in FOLDERS)})/[\w./*{{}},+-]*$")
BRACES = re.compile(r"\{([^{}]*)\}")


def expand(path):
    """`a/{b,c}.h` as a/b.h and a/c.h."""
    match = BRACES.search(path)
    if not match:
        return [path]
    return [full for choice in match.group(1).split(",")
            for full in expand(path[:match.start()] + choice + path[match.end():])]


def paths_in(code):
    """The repository paths among the words of a piece of code."""
    for word in code.split():
        word = word.removeprefix("./")
        word = re.sub(r"(:\d+(-\d+)?)?[.,:;)]*$", "", word)
        if PATH.match(word):
            yield from expand(word)


def exists(root, path):
    if "*" in path:
        return any(root.glob(path))
    return (root / path).exists()


def pieces(text):
    """Pairs of line number and code: what is between backticks, and the lines of fenced blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield number, line
        else:
            for code in CODE.findall(line):
                yield number, code


def check(root, document):
    text = document.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    if document.name == "README.md" and lines > README_LINES:
        yield lines, f"README.md has {lines} lines, more than {README_LINES}"
    for number, code in pieces(text):
        for path in paths_in(code):
            if not exists(root, path):
                yield number, f"`{path}` does not exist"


def main(argv):
    root = Path(argv[0] if argv else Path(__file__).parents[1]).resolve()
    readme = root / "README.md"
    broken = 0
    if not readme.is_file():
        print("README.md:1: is missing")
        broken += 1
    documents = [readme] if readme.is_file() else []
    documents += sorted((root / "docs").glob("*.md"))
    for document in documents:
        for number, message in check(root, document):
            print(f"{document.relative_to(root)}:{number}: {message}")
            broken += 1
    print(f"{len(documents)} documents checked, {broken} faults")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
