"""Publishes the outbox, in order, from whichever process holds the relay's lock.

A session-level advisory lock elects one relay among all services; it is freed by PostgreSQL when its holder dies, and
the others try to take it every second. A row is deleted after the bus has acknowledged it: a crash in between publishes
it again, and ``Nats-Msg-Id`` lets the bus drop the copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

import asyncpg
import msgspec
import structlog

from libs.db.engine import Database, is_connection_failure
from libs.errors import Unavailable

log = structlog.get_logger()

RELAY_LOCK: Final = 0x5E50_1073
"""Key of the advisory lock; any number that nothing else uses."""
CHANNEL: Final = "outbox"
BATCH: Final = 500
_RETRY_S: Final = 1.0
_LOOK_AGAIN_S: Final = 5.0  # a notification may be lost with its connection; this bounds the harm


class Publisher(Protocol):
    async def publish(
        self, subject: str, payload: bytes, *, msg_id: str | None = None, headers: Mapping[str, str] | None = None
    ) -> object: ...


async def relay_outbox(db: Database, bus: Publisher) -> None:
    """Relay until cancelled; losing the database or the bus only delays."""
    while True:
        try:
            await _relay_while_connected(db.url, bus)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, Unavailable) as error:
            if not isinstance(error, Unavailable) and not is_connection_failure(error):
                raise
            log.warning("outbox.interrupted", error=str(error))
        await asyncio.sleep(_RETRY_S)


async def _relay_while_connected(url: str, bus: Publisher) -> None:
    connection = await asyncpg.connect(
        url, timeout=10, server_settings={"application_name": "resolute-relay", "tcp_keepalives_idle": "10"}
    )
    try:
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", RELAY_LOCK):  # noqa: ASYNC110
            await asyncio.sleep(_RETRY_S)
        log.info("outbox.relaying")
        # Ids start anew with every database, so they are told apart by the cluster they belong to.
        origin = str(await connection.fetchval("SELECT cluster_id FROM cluster"))[:8]
        news = asyncio.Event()
        await connection.add_listener(CHANNEL, lambda *_: news.set())
        while True:
            news.clear()
            if await _relay_batch(connection, bus, origin) < BATCH:
                await _wait(news)
    finally:
        connection.terminate()  # frees the lock at once, also when the connection is half dead


async def _wait(news: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_LOOK_AGAIN_S):
            await news.wait()
    except TimeoutError:
        pass


async def _relay_batch(connection: Any, bus: Publisher, origin: str) -> int:
    rows = await connection.fetch("SELECT id, subject, headers, payload FROM outbox ORDER BY id LIMIT $1", BATCH)
    done = 0
    try:
        for row in rows:
            msg_id = f"{origin}-{row['id']}"
            await bus.publish(
                row["subject"],
                row["payload"],
                msg_id=msg_id,
                headers={"ce-id": msg_id, **msgspec.json.decode(row["headers"])},
            )
            done += 1
    finally:
        if done:
            await connection.execute("DELETE FROM outbox WHERE id = ANY($1)", [row["id"] for row in rows[:done]])
    return len(rows)
