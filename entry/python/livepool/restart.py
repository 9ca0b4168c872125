"""livepool reads its environment once, when it is imported, and the command line is a part of that import: so a command that
wants other variables begins anew."""

from __future__ import annotations

import os
import sys


def unless_set(wanted: dict[str, str], argv: list[str]) -> None:
    """Becomes `python -m livepool ARGV` with these variables; returns if they have these values already."""
    if all(os.environ.get(name) == value for name, value in wanted.items()):
        return
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "livepool", *argv], {**os.environ, **wanted})
