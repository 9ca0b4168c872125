"""Plain eager code as passes: it runs as it is, and its CPU tensors are served from a plan."""

from __future__ import annotations

from livepool import _livepool


class pass_scope:  # noqa: N801  (used like a function, as torch.no_grad)
    """Marks the body of a `with` as one pass of the scope `name`.

        for image in images:
            with livepool.pass_scope("detector"):
                result = model(image)

    The first pass is recorded, its plan is made in the background, later passes are served from it. Nothing in the
    program changes: where a pass does otherwise than before (another branch, another shape, a tensor kept for longer),
    fewer of its allocations come from the plan. Each shape gets a plan; they share one arena, as large as the largest.

    Scopes nest, the inner one serves what is allocated inside it. A scope entered again inside itself does nothing,
    nor does one inside a capture or replay. Only the thread that enters is served. A pass that ends by an exception
    teaches nothing. livepool.scope_stats() tells what came of it.

    Entering raises NotInstalled before livepool.install("cpu"). Leaving raises Error on another thread than the one that
    entered.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: list = []  # the same object may be entered again

    def __enter__(self) -> pass_scope:
        self._running.append(_livepool.PassScope(self._name))
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self._running[-1].end(kind is not None)
        self._running.pop()


def scope_stats(name: str | None = None) -> dict:
    """What a scope has done so far, or without a name a dict of all scopes: `passes`, `hits` (allocations served from
    the plan), `misses` (not served, though planned or not foreseen), `upstream` (planned to go to PyTorch's allocator, as
    they outlive the pass), `divergences` (allocations that were not the one that was due), `kinds` of pass that are
    known and `units` (of these, planned), `arena_bytes` and `lower_bound_bytes` of the largest plan, and
    `recorded_peak_bytes`, the most that the tensors of one recorded pass held at once."""
    return _livepool.scope_stats() if name is None else _livepool.scope_stats_of(name)


def wait_for_plans() -> None:
    """Returns when the plans of all passes so far are made: for measurements."""
    _livepool.wait_for_plans()


def serve_eager_code() -> None:
    """From now on passes that repeat are found in plain eager code on the CPU, without scopes, and served as those of a
    scope are: on each thread, wherever it is in no scope, capture or replay. stats()["eager_code"] tells what came of
    it. LIVEPOOL=1 in the environment, or `livepool run app.py`, do it without a change of the program; LIVEPOOL=0 has
    this function do nothing. There is no way back. Raises NotInstalled before livepool.install("cpu").
    """
    _livepool.serve_eager_code()
