"""Retry a call while its failure is one that passes, with a pause in between and within bounds.

Only the caller knows which failures pass and what each of them should leave in the log, so both are arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

Result = TypeVar("Result")

_FIRST_BACKOFF_S: Final = 0.25
_FIRST_PAUSE_S: Final = 0.05


async def with_retry(
    work: Callable[[], Awaitable[Result]],
    *,
    is_transient: Callable[[Exception], bool],
    on_retry: Callable[[Exception, int], None],
    pause_s: Callable[[int], float],
    timeout_s: float | None = None,
    max_attempts: int | None = None,
) -> Result:
    """The result of the first call of ``work`` that succeeds; raises the error of the last one otherwise.

    work          may be called, and cut off, any number of times
    is_transient  whether another attempt may go better; any other error is raised at once
    on_retry      told of the error and the number of the attempt, counted from 1, before the pause
    pause_s       seconds before the next attempt, by the number of the attempt that failed
    timeout_s     seconds after which no further attempt begins; None for as long as it takes
    """
    loop = asyncio.get_running_loop()
    give_up_at = None if timeout_s is None else loop.time() + timeout_s
    attempt = 0
    while True:
        attempt += 1
        try:
            return await work()
        except Exception as error:
            is_last = attempt == max_attempts or (give_up_at is not None and loop.time() >= give_up_at)
            if is_last or not is_transient(error):
                raise
            on_retry(error, attempt)
        await asyncio.sleep(pause_s(attempt))


def every(seconds: float) -> Callable[[int], float]:
    """The same pause after every attempt."""
    return lambda attempt: seconds


def soon_then_every(seconds: float) -> Callable[[int], float]:
    """Short pauses at first, for what is likely to be there in a moment; from then on the same one."""
    return lambda attempt: min(seconds, _FIRST_PAUSE_S * 2 ** min(attempt - 1, 10))


def backoff_s(attempt: int, *, longest_s: float) -> float:
    """Seconds of pause after ``attempt`` failures in a row: 0.25, doubled each time, at most ``longest_s``."""
    return float(min(longest_s, _FIRST_BACKOFF_S * 2 ** min(attempt - 1, 10)))
