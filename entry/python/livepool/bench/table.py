"""The table of all results."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from livepool.bench.report import NONE, mebibytes


def milliseconds(value):
    return NONE if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def count(value):
    return NONE if value is None else str(value)


def verdict(result):
    """`equal`, or how far off; `as it is` for one that is not captured and equal; a model that ended without a result is `failed`."""
    if result.bitwise_equal is None:
        return "failed"
    if result.bitwise_equal:
        return "failed" if result.problem else "as it is" if result.not_captured else "equal"
    return "differs" if result.max_abs_diff is None else f"off by {result.max_abs_diff:.2g}"


# Header, text of one result, and whether the column is for CUDA only.
COLUMNS = (
    ("sum of\nall", lambda r: mebibytes(r.sum_bytes), False),
    ("eager\npeak", lambda r: mebibytes(r.eager_live_peak_bytes), False),
    ("lower\nbound", lambda r: mebibytes(r.lower_bound_bytes), False),
    ("arena", lambda r: mebibytes(r.arena_bytes), False),
    ("held\nnative", lambda r: mebibytes(r.native_held_bytes), True),
    ("held\nlivepool", lambda r: mebibytes(r.livepool_held_bytes), True),
    ("eager\nms", lambda r: milliseconds(r.eager_ms), False),
    ("replay\nms", lambda r: milliseconds(r.replay_ms), False),
    ("result", verdict, False),
    ("hits", lambda r: count(r.hits), False),
    ("misses", lambda r: count(r.misses), False),
)


def caption(device, results):
    batches = ", ".join(sorted({f"batch {r.batch}, {r.dtype}" for r in results}))
    held = "; held: what a process keeps for transients" if device == "cuda" else ""
    return (f"{device}, {batches}. Memory in MiB, weights and inputs not counted{held}. "
            "Result: replay against eager, bit for bit, on two inputs that were not captured. Hits, misses: one replay.")


def make(device, results):
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns = [(header, text) for header, text, cuda_only in COLUMNS if device == "cuda" or not cuda_only]
    table.add_column("model", no_wrap=True)
    for header, _ in columns:
        table.add_column(header, justify="right", no_wrap=True)
    for result in results:
        table.add_row(result.model, *(text(result) for _, text in columns), style=None if result.right else "bold red")
    return table


def print_whole(table, file=None):
    """Prints a table of which no figure is ever cut: one wider than the terminal wraps there. Returns a console for the
    text below it."""
    wide = Console(file=file, highlight=False, width=1000)
    wide.print(table, width=table.__rich_measure__(wide, wide.options).maximum)
    console = Console(file=file, highlight=False)
    console.width = max(console.width, 80)
    return console


def show(device, results, file=None):
    console = print_whole(make(device, results), file)
    console.print(Text(caption(device, results)))
    for result in results:
        if result.not_captured:
            console.print(Text(f"{result.model}: not captured: {result.not_captured}"), soft_wrap=True)
        if result.problem:
            console.print(Text(f"{result.model}: {result.problem}", style="red"), soft_wrap=True)
