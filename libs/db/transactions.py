"""Transactions that are done again, whole, when they lost a race for locks."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.retry import with_retry

TRIES: Final = 5
_WAIT_S: Final = (0.01, 0.05)
"""Shortest and longest, times the number of the try; by chance, so that rivals do not meet again."""
_LOST_RACE: Final = frozenset({"40001", "40P01"})
"""serialization_failure and deadlock_detected (PostgreSQL manual, appendix A)."""

Result = TypeVar("Result")
log = structlog.get_logger(__name__)


async def in_transaction(db: Database, work: Callable[[AsyncConnection], Awaitable[Result]]) -> Result:
    """The result of ``work``, done in one transaction; after a deadlock it is done again, a few times at most.

    ``work`` must have no effect but on the transaction, since it may run more than once.
    """

    async def once() -> Result:
        async with db.transaction() as connection:
            return await work(connection)

    return await with_retry(once, is_transient=_lost_race, on_retry=_say, pause_s=_pause_s, max_attempts=TRIES)


def _lost_race(error: Exception) -> bool:
    """Whether the same transaction may well succeed when it is tried again."""
    return _sqlstate(error) in _LOST_RACE


def _say(error: Exception, attempt: int) -> None:
    log.info("transaction.retried", attempt=attempt, sqlstate=_sqlstate(error))


def _pause_s(attempt: int) -> float:
    return random.uniform(*_WAIT_S) * attempt  # noqa: S311  # jitter, not a secret


def _sqlstate(error: Exception) -> str | None:
    state = getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)
    return state if isinstance(state, str) else None
