"""Logs whose TLS handshakes failed: of tasks, which one it is that does not trust the certificate of a service."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from libs.db.engine import Connection, Database
from libs.db.failures import DRIVER_ERRORS
from libs.db.tables.tasks import allocations
from libs.serving.tls.handshakes import HandshakeFailures

log = structlog.get_logger()

PAUSE_S: Final = 1.0
"""Between two lines: strangers do not fill the log."""


async def log_failed_handshakes(failures: HandshakeFailures, db: Database) -> None:
    """Write a line of each failure that is worth one, until cancelled."""
    while True:
        failure = await failures.next()
        try:
            async with db.read() as connection:
                task = await task_at(connection, failure.address)
        except (DBAPIError, NoConnectionFree, OSError, *DRIVER_ERRORS):
            task = {}  # the line is worth more than whose it is
        log.warning("handshake.failed", **failure._asdict(), **task)
        await asyncio.sleep(PAUSE_S)


async def task_at(connection: Connection, address: str) -> dict[str, Any]:
    """The allocation that has a pod at an address and its task; nothing where there is none, or more than one."""
    query = (
        select(allocations.c.allocation_id, allocations.c.task_id)
        .where(allocations.c.released_at.is_(None), allocations.c.pods.contains([{"addresses": [address]}]))
        .limit(2)
    )
    found = (await connection.execute(query)).all()
    return {"allocation": found[0].allocation_id, "task": found[0].task_id} if len(found) == 1 else {}
