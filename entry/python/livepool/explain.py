"""What a wrapped module does with its calls, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from livepool.signature_cache import Signature


@dataclass(frozen=True)
class SignatureReport:
    """One signature. `status`: "captured", "refused" (runs as it is, for `reason`) or "seen" (captured when it is seen
    often enough). `graph`: Captured.report(), None unless captured; its bytes are those of one replay."""

    signature: str
    status: str
    reason: str | None
    sightings: int  # calls that ran as they are since it last had a graph
    captures: int
    given_up: int  # replays of this graph that did not come to their end, so that the module ran instead
    graph: dict[str, Any] | None

    @staticmethod
    def of(signature: Signature) -> "SignatureReport":
        graph = signature.graph
        status = "captured" if graph is not None else "refused" if signature.refusal is not None else "seen"
        return SignatureReport(str(signature.key), status, signature.refusal, signature.sightings, signature.captures,
                               signature.given_up, graph.report() if graph is not None else None)

    def __str__(self) -> str:
        if self.graph is None:
            why = f": {self.reason}" if self.reason else f" {self.sightings} times, no graph yet"
            return f"({self.signature}) {self.status}{why}"
        given_up = f", {self.given_up} given up" if self.given_up else ""
        return (f"({self.signature}) {describe_graph(self.graph)}; {self.graph['replays']} replays{given_up}, {self.graph['hits']} hits, "
                f"{self.graph['misses']} misses{'' if self.graph['checked'] else ', not checked yet'}")


@dataclass(frozen=True)
class Explanation:
    """What livepool.explain() returns: print it, or read its fields."""

    module: str  # the name of its type
    max_graphs: int
    capture_after: int
    signatures: list[SignatureReport] = field(default_factory=list)  # that are remembered
    replayed: int = 0  # calls that a graph served, also graphs that are gone
    as_is: dict[str, int] = field(default_factory=dict)  # why calls ran as they are -> how many
    plans_loaded: int = 0  # by load_plans()

    def __str__(self) -> str:
        graphs = sum(each.graph is not None for each in self.signatures)
        lines = [f"{self.module}: {self.replayed} calls replayed; {graphs} of at most {self.max_graphs} graphs, captured at sighting "
                 f"{self.capture_after}"]
        lines += [f"  {each}" for each in self.signatures]
        if self.plans_loaded:
            used = sum(each.graph is not None and each.graph["as_saved"] for each in self.signatures)
            lines.append(f"  {self.plans_loaded} plans loaded from a file, {used} of them in use")
        lines += [f"  ran as it is {count} times: {reason}" for reason, count in self.as_is.items()]
        return "\n".join(lines)


def describe_graph(report: dict[str, Any]) -> str:
    """One line about a graph, from Captured.report()."""
    return (f"{report['ops']} ops, {report['buffers']} buffers, bound {format_bytes(report['lower_bound_bytes'])}, "
            f"arena {format_bytes(report['arena_bytes'])}, captured in {report['capture_ms']:.1f} ms, "
            f"planned in {report['plan_ms']:.1f} ms{', plan from a file' if report['as_saved'] else ''}")


def format_bytes(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            break
        n /= 1024
    else:
        unit = "GiB"
    return f"{n:.0f} {unit}" if unit == "B" else f"{n:.2f} {unit}"
