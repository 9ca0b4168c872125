"""The loop over the models."""

import sys

import livepool
from livepool.bench import process, table
from livepool.bench.measure import measure
from livepool.bench.progress import Progress
from livepool.bench.report import write_json
from livepool.bench.result import one_line


def run(request):
    """Runs what `request` asks for, prints the table, writes the JSON; returns the exit code."""
    try:
        livepool.install(device=request.device)
    except livepool.Error as error:
        print(f"livepool bench: {one_line(error)}", file=sys.stderr)
        return 1
    results = []
    with Progress() as progress:
        for number, name in enumerate(request.models, 1):
            progress.model(number, len(request.models), name)
            result = measure(name, request.device, request.dtype, request.batch, progress.step)
            if request.device == "cuda":
                add_held(result, progress)
            if result.problem:
                progress.note(f"{name}: {result.problem}")
            results.append(result)
    table.show(request.device, results)
    if request.json_path:
        write_json(request.json_path, request.device, {"models": [result.as_json() for result in results]})
    return 0 if all(result.right for result in results) else 1


def add_held(result, progress):
    """What a process holds, native and livepool. Without a correct replay livepool's figure means nothing."""
    modes = process.MODES if result.right and not result.not_captured else ("native",)
    for mode in modes:
        progress.step(f"measures what a fresh process holds, {mode}")
        try:
            held = process.held_bytes(mode, result.model, result.dtype, result.batch, progress.note)
            setattr(result, f"{mode}_held_bytes", held)
        except process.ProcessFailed as error:
            result.problem = result.problem or str(error)
