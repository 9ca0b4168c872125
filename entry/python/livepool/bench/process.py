"""Runs a measurement in a process of its own, which prints one line of JSON at its end."""

import argparse
import json
import subprocess
import sys

from livepool.bench import models

MODES = ("native", "livepool")


class ProcessFailed(Exception):
    """The process ended without a figure; the message says why in one line."""


def parser(module, description, device=None):
    """Of the command line of `python -m livepool.bench.MODULE`: what all measurements ask for. device: the default; None:
    it must be given."""
    made = argparse.ArgumentParser(prog=f"python -m livepool.bench.{module}", description=description)
    made.add_argument("--mode", choices=MODES, required=True)
    made.add_argument("--model", required=True)
    made.add_argument("--device", choices=("cpu", "cuda"), default=device, required=device is None)
    made.add_argument("--dtype", choices=sorted(models.DTYPES), required=True)
    made.add_argument("--outputs", choices=("fresh", "arena"), default="fresh")
    return made


def run_json(module, warn, **options):
    """What `python -m livepool.bench.MODULE --option value ...` prints; options of None are left out. Passes the process's
    warnings to `warn(text)`."""
    command = [sys.executable, "-m", f"livepool.bench.{module}"]
    for name, value in options.items():
        if value is not None:
            command += [f"--{name}", str(value)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line.strip() for line in process.stderr.splitlines() if line.strip()]
    if process.returncode != 0:
        last = said[-1] if said else f"exit code {process.returncode}"
        raise ProcessFailed(last)
    for line in said:
        if line.startswith("warning: "):
            warn(line.removeprefix("warning: "))
    return json.loads(process.stdout.splitlines()[-1])


def held_bytes(mode, name, dtype, batch, warn):
    """Bytes that a process in `mode` holds for transients on a CUDA device."""
    try:
        return run_json("held", warn, mode=mode, model=name, device="cuda", dtype=dtype, batch=batch)["held_bytes"]
    except ProcessFailed as error:
        raise ProcessFailed(f"held memory, {mode}: {error}") from None
