"""Tables of figures as Markdown on stdout, and as JSON."""

import json
import math

from livepool.bench import environment

NONE = "-"


def mebibytes(value):
    return NONE if value is None else f"{value / 2**20:.1f}"


def ratio(value):
    return NONE if value is None else f"{value:.3f}"


def milliseconds(value):
    return NONE if value is None else f"{value:.2f}"


def geometric_mean(values):
    """Of those that are there and above 0; None if there are none."""
    known = [value for value in values if value is not None and value > 0]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def divide(a, b):
    return None if a is None or not b else a / b


def markdown(headers, rows):
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (headers, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headers), *lines[1:]])


def show(title, device, headers, rows, problems):
    """Prints the table under one line that says what and where. `problems`: lines below it."""
    print(f"{title}\n\n{environment.one_line(environment.describe(device))}\n\n{markdown(headers, rows)}")
    for problem in problems:
        print(f"\n{problem}")


def write_json(path, device, document):
    """`document` beside the environment; no NaN."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"environment": environment.describe(device), **document}, file, indent=2, allow_nan=False)
        file.write("\n")
