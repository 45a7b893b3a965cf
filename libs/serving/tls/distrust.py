"""Logs whose TLS handshakes failed: of tasks, which one it is that does not trust the certificate of a service."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

import structlog

from libs.db.failures import is_connection_failure, is_of_database
from libs.db.prepared.statements import Connection, PreparedStatement, as_document
from libs.serving.tls.handshakes import HandshakeFailures

log = structlog.get_logger()

PAUSE_S: Final = 1.0
"""Between two lines: strangers do not fill the log."""
_AT: Final = PreparedStatement("""
    SELECT allocation_id, task_id FROM allocations WHERE released_at IS NULL AND pods @> :pods::text::jsonb LIMIT 2
""")


class Readable(Protocol):
    """What is needed of a ``Database`` or of a ``DriverPool``."""

    def read(self) -> AbstractAsyncContextManager[Connection]: ...


async def log_failed_handshakes(failures: HandshakeFailures, db: Readable) -> None:
    """Write a line of each failure that is worth one, until cancelled."""
    while True:
        failure = await failures.next()
        try:
            async with db.read() as connection:
                task = await task_at(connection, failure.address)
        except Exception as error:
            if not (is_of_database(error) or is_connection_failure(error)):
                raise
            task = {}  # the line is worth more than whose it is
        log.warning("handshake.failed", **failure._asdict(), **task)
        await asyncio.sleep(PAUSE_S)


async def task_at(connection: Connection, address: str) -> dict[str, Any]:
    """The allocation that has a pod at an address and its task; nothing where there is none, or more than one."""
    found = await _AT.rows(connection, pods=as_document([{"addresses": [address]}]))
    return {"allocation": found[0]["allocation_id"], "task": found[0]["task_id"]} if len(found) == 1 else {}
