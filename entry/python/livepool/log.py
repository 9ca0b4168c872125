"""The logger "livepool": LIVEPOOL_LOG=off|warning|info sets its level.

Where the application has configured logging its handlers get the records; otherwise they are printed to stderr, as
the compiled half does.
"""

from __future__ import annotations

import logging
import sys

from livepool import _livepool

logger = logging.getLogger("livepool")


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(f"livepool: {record.getMessage()}", file=sys.stderr, flush=True)


logger.addHandler(_Stderr())
logger.setLevel((logging.CRITICAL, logging.WARNING, logging.INFO)[_livepool.log_level()])
