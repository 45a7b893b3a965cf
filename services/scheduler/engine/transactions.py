"""One transaction, repeated when PostgreSQL gave it up in favour of another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError

from libs.db.engine import Connection, Database

log = structlog.get_logger()

_T = TypeVar("_T")

ATTEMPTS: Final = 5
_GIVEN_UP: Final = ("40001", "40P01")
"""serialization_failure, deadlock_detected (PostgreSQL, appendix A)."""


async def in_transaction(db: Database, work: Callable[[Connection], Awaitable[_T]]) -> _T:
    """Run ``work`` in one transaction and return what it returns; a deadlock starts it again, a few times."""
    for attempt in range(1, ATTEMPTS):
        try:
            async with db.transaction() as connection:
                return await work(connection)
        except DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state not in _GIVEN_UP:
                raise
            log.info("transaction.repeated", sqlstate=state, attempt=attempt)
        await asyncio.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311  # jitter, not a secret
    async with db.transaction() as connection:
        return await work(connection)
