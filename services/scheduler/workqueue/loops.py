"""Loops that go on whatever fails in them: a failure is reported and counted, and the round is made again later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.retry import backoff_s
from libs.telemetry import counter
from libs.waiting import wait_until_set

log = structlog.get_logger()

_LONGEST_PAUSE_S: Final = 15.0
FAILURES: Final = counter("resolute_scheduler_failures_total", "Rounds of a loop that failed", "loop")


async def run_periodically(
    loop: str, work: Callable[[], Awaitable[object]], *, every_s: float, wake: asyncio.Event
) -> None:
    """Do ``work`` at once, then whenever ``wake`` is set and at least ``every_s`` seconds after the last time.

    Goes on until cancelled. ``wake`` is cleared before each round, so that what is said during one leads to another.
    """
    failures = 0
    while True:
        wake.clear()
        try:
            await work()
        except Exception as error:  # noqa: BLE001  # the rim of the loop
            failures += 1
            pause_s = pause_after(failures)
            report(loop, error, pause_s=pause_s)
            await asyncio.sleep(pause_s)
        else:
            failures = 0
            await wait_until_set(wake, timeout_s=every_s)


def pause_after(failures: int) -> float:
    """Seconds before the next round, after so many that failed in a row."""
    return backoff_s(failures, longest_s=_LONGEST_PAUSE_S)


def report(loop: str, error: Exception, *, pause_s: float) -> None:
    FAILURES.labels(loop).inc()
    if isinstance(error, Unavailable) or is_connection_failure(error):
        log.warning("loop.interrupted", loop=loop, error=str(error), retry_s=pause_s)
    else:
        log.error("loop.failed", loop=loop, retry_s=pause_s, exc_info=error)
