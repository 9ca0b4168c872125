"""One model: eager, capture, replay, compared and timed."""

import gc
import logging

import torch

import livepool
from livepool.bench import compare, models, timing
from livepool.bench.result import Result, one_line

CAPTURED, SECOND, THIRD = 0, 1, 2  # seeds of the inputs; the first is captured, the others are compared
REPORTED = ("sum_bytes", "eager_live_peak_bytes", "lower_bound_bytes", "arena_bytes")


class Wrong(Exception):
    """The model ran, but what came out proves nothing or is wrong."""


def measure(name, device, dtype, batch, step):
    """The figures of one model. Never raises for what a model does: `problem` says it. `step(text)` shows progress."""
    result = Result(name, batch, dtype)
    try:
        with torch.no_grad():
            _measure(result, device, step)
    except Wrong as wrong:
        result.problem = str(wrong)
    except Exception as error:  # noqa: BLE001  one model that fails must not end the others
        result.problem = one_line(error)
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return result


def _measure(result, device, step):
    step("builds the model")
    work = models.build(result.model, device, result.dtype, result.batch)
    result.batch = work.batch
    result.weights_bytes = models.weights_bytes(work.model)
    captured, second, third = (work.inputs(seed) for seed in (CAPTURED, SECOND, THIRD))

    step("runs eager")
    expected = [work.model(**second), work.model(**third)]
    if not all(compare.all_finite(output) for output in expected):
        raise Wrong("eager's own output has NaN or infinity, so that a comparison would prove nothing")
    if compare.compare(*expected).equal:
        raise Wrong("eager's output does not depend on the input, so that a comparison would prove nothing")

    try:
        step("captures and plans")
        graph = livepool.capture(work.model, **captured)
        step("replays and compares")
        first = compare.compare(expected[0], graph.replay(**second))
        before = graph.report()
        last = compare.compare(expected[1], graph.replay(**third))
    except (livepool.CaptureRefused, livepool.GuardFailed) as refusal:
        result.not_captured = one_line(refusal).split(": ", 1)[1]
        step("is not captured: runs as it is, and compares")
        return _measure_wrapped(result, device, work.model, captured, [second, third], expected)

    report = graph.report()
    for figure in REPORTED:
        setattr(result, figure, report[figure])
    # Of one replay in steady state: the first replay of a graph may be livepool's own check.
    result.hits, result.misses = (report[key] - before[key] for key in ("hits", "misses"))

    _judge(result, compare.worst([first, last]))
    if result.hits == 0:
        raise Wrong("the replay took nothing from the arena")

    step("times eager and replay in turn")
    result.eager_ms, result.replay_ms = timing.interleaved_ms(
        [lambda: work.model(**second), lambda: graph.replay(**second)], device)


def _judge(result, difference):
    result.bitwise_equal, result.max_abs_diff = difference.equal, difference.max_abs
    if not difference.equal:
        raise Wrong(f"{'the wrapped module' if result.not_captured else 'replay'} differs from eager: {difference.reason}")


def _measure_wrapped(result, device, model, captured, others, expected):
    """A model that capture() refuses is what wrap() is for: it runs as it is, or in part."""
    result.eager_ms, = timing.interleaved_ms([lambda: model(**others[0])], device)
    logger = logging.getLogger("livepool")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the table says why it is not captured
    livepool.wrap(model, capture_after=1)
    try:
        model(**captured)
        _judge(result, compare.worst([compare.compare(want, model(**inputs)) for want, inputs in zip(expected, others)]))
    finally:
        livepool.unwrap(model)
        logger.setLevel(level)
