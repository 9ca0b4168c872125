"""`livepool run app.py args…`: the program as it is, its plain eager code served from plans (CPU)."""

from __future__ import annotations

import os
import runpy
import sys

from livepool import restart

USAGE = """usage: livepool run [--report FILE] app.py [ARGUMENT...]
       livepool run [--report FILE] -m MODULE [ARGUMENT...]

Runs a Python program as `python app.py` would. Passes that repeat are found in what it allocates on the CPU, and
served from plans; nothing else changes. With livepool installed by pip, LIVEPOOL=1 in the environment does the same for
any Python program, and for the programs that this one starts.

  --report FILE   at the end, write what was done as JSON (LIVEPOOL_REPORT); %p in FILE is the process id
"""


class BadUsage(Exception):
    """What is wrong with the command line, in words."""


def split(argv: list[str]) -> tuple[str | None, bool, list[str]]:
    """The report's file or None, whether a module is named, and the program with its arguments."""
    report, rest = None, list(argv)
    while rest and rest[0].startswith("--"):
        option, _, value = rest.pop(0).partition("=")
        if option != "--report":
            raise BadUsage(f"unrecognized option {option}")
        if not value and not rest:
            raise BadUsage("--report needs a file")
        report = value or rest.pop(0)
    is_module = bool(rest) and rest[0] == "-m"
    if is_module:
        rest.pop(0)
    if not rest or rest[0].startswith("-"):
        raise BadUsage("no module is named" if is_module else "no program is named")
    return report, is_module, rest


def run(argv: list[str]) -> int:
    """Runs the program in this process. Returns 2 after one line if the command line is wrong; what the program raises,
    SystemExit too, comes through."""
    if argv[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    try:
        report, is_module, program = split(argv)
        if not is_module and not os.path.exists(program[0]):
            raise BadUsage(f"{program[0]}: no such file")
    except BadUsage as error:
        print(f"livepool run: error: {error} (livepool run --help shows the options)", file=sys.stderr)
        return 2
    wanted = {"LIVEPOOL": os.environ.get("LIVEPOOL", "1"), **({"LIVEPOOL_REPORT": report} if report else {})}
    restart.unless_set(wanted, ["run", *(["-m"] if is_module else []), *program])
    import livepool

    livepool.install("cpu")
    sys.argv = program
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(program[0]))
    if is_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program[0], run_name="__main__")
    return 0
