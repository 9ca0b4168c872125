"""Where wrapped modules run as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_disabled: ContextVar[bool] = ContextVar("livepool_disabled", default=False)


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Inside it, wrapped modules run as they are: nothing is captured or replayed.

        with livepool.disabled():
            reference = model(x)

    It holds for the thread or the asyncio task that has entered it, and for no other (a context variable). LIVEPOOL=0
    does the same for a whole process. Graphs stay, for later calls.
    """
    token = _disabled.set(True)
    try:
        yield
    finally:
        _disabled.reset(token)


is_disabled = _disabled.get
