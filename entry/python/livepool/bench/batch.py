"""`livepool batch`: the largest batch that runs under a memory limit, PyTorch's allocator and livepool."""

from livepool.bench import models, process, report
from livepool.bench.progress import Progress

HEADERS = ("model", "native", "livepool", "livepool / native")
DEFAULT_MODELS = ("resnet50", "vit_l_16", "convnext_base", "swin_b", "bert@1x512")


def largest(fits, first, most, resolution):
    """The largest batch in [1, most] for which fits(batch) is true, 0 if none is, under the assumption that all smaller ones fit
    then, too. `first` is tried first; the answer may be too small by the share `resolution` of it."""
    good, bad = 0, most + 1
    trial = min(first, most)
    while bad - good > max(1, int(good * resolution)):
        if fits(trial):
            good = trial
        else:
            bad = trial
        if bad > most:
            trial = min(2 * good, most)
        else:
            trial = bad // 2 if good == 0 else (good + bad) // 2
        if trial == good:
            break
    return good


def run(request, outputs, limit, since, first, most, resolution):
    """Measures what `request` asks for, prints the table, writes the JSON; returns the exit code."""
    rows = []
    with Progress() as progress:
        for number, name in enumerate(request.models, 1):
            progress.model(number, len(request.models), name)
            row = {"model": name, "problem": "", "native": None, "livepool": None}
            for mode in process.MODES:
                def fits(batch, mode=mode, name=name):
                    progress.step(f"{mode}, batch {batch}")
                    return process.run_json("fits", progress.note, mode=mode, model=models.with_batch(name, batch), device=request.device,
                                            batch=batch, dtype=request.dtype, outputs=outputs, limit=limit, since=since)["fits"]

                try:
                    row[mode] = largest(fits, row["native"] or first, most, resolution)
                except process.ProcessFailed as error:
                    row["problem"] = row["problem"] or f"{mode}: {error}"
            row["of_native"] = report.divide(row["livepool"], row["native"])
            rows.append(row)
    mean = report.geometric_mean(row["of_native"] for row in rows)
    when = "weights, capture and check included" if since == "start" else "set after the warm-up (for livepool the capture and its check)"
    title = (f"Largest batch under {limit / 2**30:g} GiB, {request.device}, {request.dtype}, outputs={outputs}; the limit: {when}; "
             f"found to within {resolution:.0%}, at most {most}.")
    cells = [[row["model"], *(report.NONE if row[mode] is None else row[mode] for mode in process.MODES), report.ratio(row["of_native"])]
             for row in rows]
    report.show(title, request.device, HEADERS, [*cells, ["geometric mean", "", "", report.ratio(mean)]],
                [f"{row['model']}: {row['problem']}" for row in rows if row["problem"]])
    if request.json_path:
        report.write_json(request.json_path, request.device, {
            "limit_bytes": limit, "since": since, "outputs": outputs, "dtype": request.dtype, "resolution": resolution, "most": most,
            "models": rows, "geometric_mean": mean})
    return 1 if any(row["problem"] for row in rows) else 0
