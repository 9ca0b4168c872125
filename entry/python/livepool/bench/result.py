"""The figures of one model, under the names of the JSON; None stands for 'does not apply'."""

from dataclasses import asdict, dataclass


@dataclass
class Result:
    model: str
    batch: int
    dtype: str
    weights_bytes: int | None = None
    sum_bytes: int | None = None
    eager_live_peak_bytes: int | None = None
    lower_bound_bytes: int | None = None
    arena_bytes: int | None = None
    native_held_bytes: int | None = None
    livepool_held_bytes: int | None = None
    eager_ms: float | None = None
    replay_ms: float | None = None
    bitwise_equal: bool | None = None
    max_abs_diff: float | None = None
    hits: int | None = None
    misses: int | None = None
    not_captured: str = ""  # why it runs as it is
    problem: str = ""  # why the model failed or differs, in one line; not part of the JSON

    @property
    def right(self):
        return self.bitwise_equal is True and not self.problem

    def as_json(self):
        figures = asdict(self)
        del figures["problem"]
        return figures


def one_line(error):
    """An exception as one line: its type and the first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
