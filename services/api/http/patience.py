"""Does again for a task what its client would not ask for again.

While a task is being prepared, its client repeats no POST, neither after a broken connection nor after a 503
(docs/reference/harness-protocol.md 2): refused for the seconds that a database needs to come back, the task would fail.
So what a task reports about itself is repeated here. A connection may break after its transaction has been committed,
so only routes that say so are repeated: those where twice is as good as once (``Route.repeatable``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from libs.errors import Unavailable
from services.api.http.storage_errors import as_known_error

PATIENCE_S: Final = 20.0
"""Longer than PostgreSQL takes to recover from a crash, or a standby to take over."""
_PAUSE_S: Final = 0.25

Result = TypeVar("Result")
log = structlog.get_logger(__name__)


async def patiently(work: Callable[[], Awaitable[Result]], *, patience_s: float = PATIENCE_S) -> Result:
    """The result of ``work``, which is done again while what it needs is away; raises its error when time is up."""
    give_up_at = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            return await work()
        except Exception as error:
            # Only what a database or bus that is away looks like: an Unavailable of our own is a decision.
            if not isinstance(as_known_error(error), Unavailable):
                raise
            if asyncio.get_running_loop().time() >= give_up_at:
                raise
            log.info("http.repeated", error=str(error).partition("\n")[0])
        await asyncio.sleep(_PAUSE_S)
