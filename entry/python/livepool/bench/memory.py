"""`livepool memory`: the arena against what eager has alive, and what a process holds, PyTorch's allocator and livepool."""

from livepool.bench import process, report
from livepool.bench.progress import Progress

HEADERS = ("model", "sum", "eager live peak", "bound", "arena", "arena / peak", "held, native", "held, livepool", "livepool / native",
           "result")


def run(request, outputs):
    """Measures what `request` asks for, prints the table, writes the JSON; returns the exit code."""
    rows = []
    with Progress() as progress:
        for number, name in enumerate(request.models, 1):
            progress.model(number, len(request.models), name)
            rows.append(measure(name, request, outputs, progress))
    means = {key: report.geometric_mean(row[key] for row in rows) for key in ("arena_of_peak", "held_of_native")}
    title = (f"Memory in MiB, {request.device}, {request.dtype}, outputs={outputs}; a process each for what is held, weights and inputs "
             "not counted.")
    report.show(title, request.device, HEADERS, [*map(_cells, rows), _mean_cells(means)],
                [f"{row['model']}: {row['problem']}" for row in rows if row["problem"]])
    if request.json_path:
        report.write_json(request.json_path, request.device, {"outputs": outputs, "dtype": request.dtype, "models": rows,
                                                              "geometric_means": means})
    return 1 if any(row["problem"] for row in rows) else 0


def measure(name, request, outputs, progress):
    """The figures of one model; never raises for what a process does: `problem` says it."""
    row = {"model": name, "problem": "", "sum_bytes": None, "eager_live_peak_bytes": None, "lower_bound_bytes": None, "arena_bytes": None,
           "native_held_bytes": None, "livepool_held_bytes": None, "bitwise_equal": None}
    for mode in process.MODES:
        progress.step(f"a process of its own, {mode}")
        try:
            figures = process.run_json("held", progress.note, mode=mode, model=name, device=request.device, dtype=request.dtype,
                                       batch=request.batch, outputs=outputs)
        except process.ProcessFailed as error:
            row["problem"] = row["problem"] or f"{mode}: {error}"
            continue
        row[f"{mode}_held_bytes"] = figures["held_bytes"]
        row |= {key: figures[key] for key in row if key in figures and key != "model"}
        if figures.get("bitwise_equal") is False:
            row["problem"] = row["problem"] or f"the replay differs from eager: {figures['difference']}"
    row["arena_of_peak"] = report.divide(row["arena_bytes"], row["eager_live_peak_bytes"])
    row["held_of_native"] = report.divide(row["livepool_held_bytes"], row["native_held_bytes"])
    return row


def _cells(row):
    result = {True: "equal", False: "differs", None: "failed"}[row["bitwise_equal"]]
    sizes = [report.mebibytes(row[key]) for key in ("sum_bytes", "eager_live_peak_bytes", "lower_bound_bytes", "arena_bytes")]
    held = [report.mebibytes(row[key]) for key in ("native_held_bytes", "livepool_held_bytes")]
    return [row["model"], *sizes, report.ratio(row["arena_of_peak"]), *held, report.ratio(row["held_of_native"]), result]


def _mean_cells(means):
    return ["geometric mean", "", "", "", "", report.ratio(means["arena_of_peak"]), "", "", report.ratio(means["held_of_native"]), ""]
