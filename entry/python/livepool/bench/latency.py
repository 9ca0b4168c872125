"""`livepool latency`: one call of a model, five ways in turn: eager, replay op by op, as a CUDA graph with fresh outputs and
with outputs in the arena, and torch.cuda.graph around the module."""

import gc
from dataclasses import asdict, dataclass

import torch
import livepool
from livepool.bench import compare, models, report, timing
from livepool.bench.progress import Progress
from livepool.bench.result import one_line

CAPTURED, OTHER = 0, 1  # seeds of the inputs


@dataclass
class Latency:
    """Median milliseconds of one call; None: this way does not exist here."""

    model: str
    ops: int | None = None
    eager_ms: float | None = None
    replay_ms: float | None = None
    graph_ms: float | None = None
    graph_arena_ms: float | None = None
    torch_graph_ms: float | None = None
    graph_of_torch: float | None = None  # graph_ms / torch_graph_ms
    problem: str = ""


def measure(name, device, dtype, batch):
    """Never raises for what a model does: `problem` says it."""
    result = Latency(name)
    try:
        with torch.no_grad():
            _measure(result, device, dtype, batch)
    except Exception as error:  # noqa: BLE001  one model that fails must not end the others
        result.problem = one_line(error)
    gc.collect()
    return result


def _measure(result, device, dtype, batch):
    work = models.build(result.model, device, dtype, batch)
    captured, other = work.inputs(CAPTURED), work.inputs(OTHER)
    expected = work.model(**other)
    op_by_op = livepool.capture(work.model, **captured)
    result.ops = op_by_op.report()["ops"]
    ways = {"eager_ms": lambda: work.model(**other), "replay_ms": lambda: op_by_op.replay(**other)}
    if device == "cuda":
        fresh, arena = (livepool.capture(work.model, mode="graph", outputs=outputs, **captured) for outputs in ("fresh", "arena"))
        for graph in (fresh, arena):
            graph.replay(**other)
            if graph.report()["not_launched"]:
                raise livepool.Error(f"no CUDA graph: {graph.report()['not_launched']}")
        ways |= {"graph_ms": lambda: fresh.replay(**other), "graph_arena_ms": lambda: arena.replay(**other),
                 "torch_graph_ms": torch_cuda_graph(work.model, captured, other)}
    for figure, run in ways.items():
        run()  # the first replay of a graph may be livepool's own check
        difference = compare.compare(expected, run())
        if not difference.equal and figure != "torch_graph_ms":
            raise livepool.Error(f"{figure.removesuffix('_ms')} differs from eager: {difference.reason}")
    for figure, milliseconds in zip(ways, timing.interleaved_ms(list(ways.values()), device)):
        setattr(result, figure, milliseconds)
    result.graph_of_torch = report.divide(result.graph_ms, result.torch_graph_ms)


def torch_cuda_graph(model, captured, other):
    """A call of `model` through torch.cuda.graph: inputs copied in, the static outputs returned."""
    static = {key: value.clone() for key, value in captured.items()}
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(**static)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = model(**static)

    def call():
        for key, value in other.items():
            static[key].copy_(value)
        graph.replay()
        return outputs

    return call


COLUMNS = (("ops", "ops"), ("eager", "eager_ms"), ("replay", "replay_ms"), ("graph", "graph_ms"),
           ("graph, outputs in arena", "graph_arena_ms"), ("torch.cuda.graph", "torch_graph_ms"), ("graph / torch.cuda.graph", "graph_of_torch"))


def show(request, results):
    rows = []
    for result in results:
        figures = [getattr(result, name) for _, name in COLUMNS]
        rows.append([result.model, *(report.NONE if f is None else f if isinstance(f, int) else report.milliseconds(f) for f in figures)])
    title = (f"Median ms of one call, each waited for; all ways in turn, in one process. {request.device}, batch {request.batch} where the "
             f"name says no other, {request.dtype}.")
    report.show(title, request.device, ("model", *(header for header, _ in COLUMNS)), rows,
                [f"{result.model}: {result.problem}" for result in results if result.problem])


def run(request):
    """Measures what `request` asks for, prints the table, writes the JSON; returns the exit code."""
    livepool.install(device=request.device)
    results = []
    with Progress() as progress:
        for number, name in enumerate(request.models, 1):
            progress.model(number, len(request.models), name)
            results.append(measure(name, request.device, request.dtype, request.batch))
    show(request, results)
    if request.json_path:
        report.write_json(request.json_path, request.device, {"batch": request.batch, "dtype": request.dtype,
                                                              "models": [asdict(result) for result in results]})
    return 1 if any(result.problem for result in results) else 0
