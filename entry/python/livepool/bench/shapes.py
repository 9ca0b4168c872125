"""`livepool shapes`: many shapes of a model on one arena, which is as large as the largest plan and grows no more."""

import re

from livepool.bench import process, report
from livepool.bench.progress import Progress

HEADERS = ("model", "shapes", "sum of plans", "largest plan", "arena", "held, native", "held, livepool", "livepool / native",
           "flat after round")
DEFAULT_MODELS = ("resnet50@1,4,8,16,32,64x128,160,192,224", "llama1b@1,2,4,8,12,16x128,256,384,512,768,1024")
PAGE = 2 << 20  # bytes: an arena is mapped in pages


class BadShapes(ValueError):
    """A model with its shapes is not written as MODEL@BATCHES x LENGTHS; the message is one line."""


def parse(text):
    """The name, and all pairs of batch and length, of NAME@1,2x128,256."""
    match = re.fullmatch(r"([^@]+)@([1-9]\d*(?:,[1-9]\d*)*)x([1-9]\d*(?:,[1-9]\d*)*)", text)
    if match is None:
        raise BadShapes(f"'{text}' is no model with shapes; an example: llama1b@1,2,4x128,256 (batches x lengths)")
    batches, lengths = ([int(each) for each in group.split(",")] for group in match.groups()[1:])
    return match[1], [(batch, length) for length in lengths for batch in batches]


def run(request, outputs):
    """Measures what `request` asks for, prints the table, writes the JSON; returns the exit code."""
    rows = []
    with Progress() as progress:
        for number, text in enumerate(request.models, 1):
            name, shapes = parse(text)
            progress.model(number, len(request.models), text)
            rows.append(measure(text, name, shapes, request, outputs, progress))
    title = (f"Many shapes in turns, MiB, {request.device}, {request.dtype}, outputs={outputs}; held: after the last round, weights not "
             "counted.")
    report.show(title, request.device, HEADERS, map(_cells, rows), [f"{row['model']}: {row['problem']}" for row in rows if row["problem"]])
    if request.json_path:
        report.write_json(request.json_path, request.device, {"outputs": outputs, "dtype": request.dtype, "models": rows})
    return 1 if any(row["problem"] for row in rows) else 0


def measure(text, name, shapes, request, outputs, progress):
    row = {"model": text, "problem": "", "shapes": len(shapes)}
    for mode in process.MODES:
        progress.step(f"a process of its own, {mode}")
        try:
            row[mode] = process.run_json("round_trip", progress.note, mode=mode, model=name, device=request.device, dtype=request.dtype,
                                         outputs=outputs, shapes=",".join(f"{batch}x{length}" for batch, length in shapes))
        except process.ProcessFailed as error:
            row[mode] = None
            row["problem"] = row["problem"] or f"{mode}: {error}"
    if row["livepool"] is not None:
        row["problem"] = row["problem"] or wrong(row["livepool"], len(shapes))
    return row


def wrong(figures, shapes):
    """What is not as promised, in one line; empty if all is."""
    if figures["plans"] < shapes:
        return f"{shapes - figures['plans']} shapes have no plan: {figures['reasons']}"
    if figures["arena_bytes"] > figures["largest_plan_bytes"] + PAGE:
        return f"the arena of {figures['arena_bytes']} bytes is larger than the largest plan of {figures['largest_plan_bytes']} bytes"
    return ""


def flat_after(held):
    """The first round after which nothing more was held; None if that is the last."""
    for number in range(len(held) - 1):
        if held[number] >= max(held[number:]):
            return number + 1
    return None


def _cells(row):
    native, ours = row["native"] or {}, row["livepool"] or {}
    plans = [report.mebibytes(ours.get(key)) for key in ("sum_of_plans_bytes", "largest_plan_bytes", "arena_bytes")]
    held = [figures["held_bytes_after"][-1] if figures else None for figures in (native, ours)]
    flat = flat_after(ours["held_bytes_after"]) if ours else None
    return [row["model"], row["shapes"], *plans, *map(report.mebibytes, held), report.ratio(report.divide(*reversed(held))),
            report.NONE if flat is None else flat]
