"""Runs `livepool.bench.held` in a fresh process and reads its line."""

import json
import subprocess
import sys

MODES = ("native", "livepool")


class HeldFailed(Exception):
    """The process ended without a figure; the message says why in one line."""


def held_bytes(mode, name, dtype, batch, warn):
    """Bytes that a process in `mode` holds for transients. Passes the process's warnings to `warn(text)`."""
    command = [sys.executable, "-m", "livepool.bench.held", "--mode", mode, "--model", name,
               "--dtype", dtype, "--batch", str(batch)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line.strip() for line in process.stderr.splitlines() if line.strip()]
    if process.returncode != 0:
        last = said[-1] if said else f"exit code {process.returncode}"
        raise HeldFailed(f"held memory, {mode}: {last}")
    for line in said:
        if line.startswith("warning: "):
            warn(line.removeprefix("warning: "))
    return json.loads(process.stdout.splitlines()[-1])["held_bytes"]
