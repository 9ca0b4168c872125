"""Which signature of a wrapped module has a graph, which waits for one, and which never gets one."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Hashable
from typing import Any

from livepool.capture import Captured

_MOST_SIGNATURES = 1024  # remembered, with and without graphs


class Signature:
    """One kind of call: what is known of it, and its graph. Its fields change under the cache's lock only."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.graph: Captured | None = None
        self.refusal: str | None = None  # why it never gets a graph (again)
        self.sightings = 0  # calls without a graph since it last had one
        self.captures = 0
        self.being_captured = False
        self.given_up = 0  # replays, since the capture
        self.given_up_in_a_row = 0
        self.seen_at = 0  # by the cache's clock
        self.watches: list[weakref.ref] = []  # on the objects among its arguments


class SignatureCache:
    """The signatures of one wrapped module, at most `max_graphs` of them with graphs.

    A signature is captured at its `capture_after`-th sighting; at its first, if there is a saved plan for it. When its graph is dropped (others were used more
    recently, the state was replaced, replays were given up again and again) it must be seen twice as often as before
    until it is captured anew: a module that changes all the time costs little, and is captured once it stays as it is.

    Finding a graph takes no lock: a dict is safe to read under Python's interpreter lock.
    """

    def __init__(self, max_graphs: int, capture_after: int) -> None:
        self._max_graphs = max_graphs
        self._capture_after = capture_after
        self._signatures: dict[Hashable, Signature] = {}
        self._clock = itertools.count(1)
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Signature | None:
        """The signature that is equal to `key`, if it was seen before; marks it as used now."""
        signature = self._signatures.get(key)
        if signature is not None:
            signature.seen_at = next(self._clock)
        return signature

    def sight(self, key: Hashable, objects: list[Any], planned: bool) -> tuple[Signature, bool]:
        """Notes a call that no graph serves. `objects`: the signature is forgotten when one of them dies. `planned`: there
        is a saved plan for it. True: the caller is to capture it, and then to call captured(), refuse() or fail()."""
        with self._lock:
            signature = self._signatures.get(key)
            if signature is None:
                self._make_room()
                signature = self._signatures[key] = Signature(key)
                signature.watches = [weakref.ref(each, lambda _: self._signatures.pop(key, None)) for each in objects]
            signature.seen_at = next(self._clock)
            signature.sightings += 1
            due = self._due(signature, planned)
            if signature.sightings < due or signature.graph is not None or signature.refusal is not None or signature.being_captured:
                return signature, False
            signature.being_captured = True
            return signature, True

    def captured(self, signature: Signature, graph: Captured) -> int:
        """Ends a capture; returns how many graphs had to go for it."""
        with self._lock:
            signature.being_captured = False
            signature.captures += 1
            signature.graph = graph
            with_graphs = sorted((each for each in list(self._signatures.values()) if each.graph is not None and each is not signature),
                                 key=lambda each: each.seen_at)
            too_many = with_graphs[: max(0, len(with_graphs) + 1 - self._max_graphs)]
            dropped = [self._drop(each) for each in too_many]
        return len(dropped)

    def refuse(self, signature: Signature, reason: str) -> None:
        """The signature gets no graph any more."""
        with self._lock:
            signature.being_captured = False
            signature.refusal = reason
            dropped = self._drop(signature)
        del dropped  # here, as what dies with it may run any code

    def defer(self, signature: Signature) -> bool:
        """A capture was refused. True if it came before its time, because of a saved plan: the signature was only seen then,
        as a first run often sets things up which are there at the next one."""
        with self._lock:
            early = signature.sightings < self._due(signature, planned=False)
            signature.being_captured = signature.being_captured and not early
            return early

    def fail(self, signature: Signature) -> None:
        """A capture has ended without a graph, for a reason that may not come again."""
        with self._lock:
            signature.being_captured = False
            signature.captures += 1
            signature.sightings = 0

    def forget(self, signature: Signature, graph: Captured) -> None:
        """Drops `graph`, unless another thread has done so and the signature has a new one."""
        with self._lock:
            dropped = self._drop(signature) if signature.graph is graph else None
        del dropped  # as above

    def gave_up(self, signature: Signature) -> int:
        """Counts a replay that was given up; returns how many were, one after the other."""
        with self._lock:
            signature.given_up += 1
            signature.given_up_in_a_row += 1
            return signature.given_up_in_a_row

    def clear(self) -> None:
        self._signatures.clear()

    def signatures(self) -> list[Signature]:
        """In the order of their first sighting."""
        return list(self._signatures.values())

    def _due(self, signature: Signature, planned: bool) -> int:
        return (1 if planned else self._capture_after) << min(signature.captures, 20)

    @staticmethod
    def _drop(signature: Signature) -> Captured | None:
        graph, signature.graph = signature.graph, None
        signature.sightings = signature.given_up = signature.given_up_in_a_row = 0
        return graph

    def _make_room(self) -> None:
        if len(self._signatures) < _MOST_SIGNATURES:
            return
        idle = sorted((each for each in list(self._signatures.values()) if each.graph is None and not each.being_captured),
                      key=lambda each: each.seen_at)
        for each in idle[: _MOST_SIGNATURES // 4]:
            self._signatures.pop(each.key, None)
