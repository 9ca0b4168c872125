"""Sums up JUnit files: why each test was skipped, one line a runner, and last `N passed, N failed, N skipped`.

    summarise.py [--left-out N] [--not-run RUNNER:REASON] RUNNER EXIT_CODE FILE [RUNNER EXIT_CODE FILE ...]

A runner that could not run at all counts as one skipped. Exits with 1 when a test failed. A runner that ended badly without a failed test, or ran none, counts as one failure.
"""

import argparse
import os
import re
import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: list = field(default_factory=list)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def skip_reason(case, skipped):
    """pytest puts the reason into the message; GoogleTest prints it in the line after `file:line: Skipped`."""
    output = case.findtext("system-out") or ""
    found = re.search(r": Skipped\n(.+)", output)
    return found.group(1).strip() if found else (skipped.get("message") or "no reason given").splitlines()[0]


def count(path):
    result = Count()
    for case in xml.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed += 1
        elif skipped is not None or case.get("status") in ("notrun", "disabled"):
            result.skipped += 1
            name, group = case.get("name"), case.get("classname")
            if group and group != name:  # ctest repeats the name there
                name = f"{group}.{name}"
            reason = "disabled" if skipped is None else skip_reason(case, skipped)
            result.reasons.append(f"{name}: {reason}")
        else:
            result.passed += 1
    return result


def count_runner(name, exit_code, path):
    result = count(path) if os.path.exists(path) else Count()
    if result.failed == 0 and (exit_code != 0 or result.passed + result.skipped == 0):
        print(f"{name} ended with exit code {exit_code}, without a failed test or any at all: counted as a failure")
        result.failed = 1
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--left-out", type=int, default=0, metavar="N", help="ctest cases not run, without a GPU")
    parser.add_argument("--not-run", action="append", default=[], metavar="RUNNER:REASON")
    parser.add_argument("runs", nargs="+", metavar="RUNNER EXIT_CODE FILE")
    args = parser.parse_args()
    print()
    total = Count()
    lines = []
    for name, code, path in zip(args.runs[0::3], args.runs[1::3], args.runs[2::3], strict=True):
        result = count_runner(name, int(code), path)
        if name == "ctest" and args.left_out:
            result.skipped += args.left_out
            result.reasons.append(f"{args.left_out} cases labelled gpu: need a CUDA device; scripts/gpu-test runs them")
        for reason in result.reasons:
            print(f"skipped, {name}: {reason}")
        lines.append(f"{name}: {result.line()}")
        total.passed += result.passed
        total.failed += result.failed
        total.skipped += result.skipped
    for runner in args.not_run:
        print(f"skipped, {runner}")
        total.skipped += 1
    print("\n".join(lines))
    print(total.line())
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
