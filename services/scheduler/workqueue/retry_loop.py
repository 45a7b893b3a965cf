"""What the rim of every loop does with a failure: say it, count it, pause, and let the loop look again."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.retry import backoff_s
from libs.telemetry import counter

log = structlog.get_logger()

LONGEST_PAUSE_S: Final = 15.0
FAILURES: Final = counter("resolute_scheduler_failures_total", "Rounds of a loop that failed", "loop")


def pause_after(failures: int) -> float:
    """Seconds before the next try: 0.25, doubled each time."""
    return backoff_s(failures, longest_s=LONGEST_PAUSE_S)


def report(loop: str, error: Exception, *, pause_s: float) -> None:
    FAILURES.labels(loop).inc()
    if isinstance(error, Unavailable) or is_connection_failure(error):
        log.warning("loop.interrupted", loop=loop, error=str(error), retry_s=pause_s)
    else:
        log.error("loop.failed", loop=loop, retry_s=pause_s, exc_info=error)


async def retried_after(loop: str, error: Exception, failures: int) -> None:
    """Report the failure and sleep until the next try is due."""
    pause_s = pause_after(failures)
    report(loop, error, pause_s=pause_s)
    await asyncio.sleep(pause_s)
