"""Publishes the outbox, in order, from whichever process holds the relay's lock.

A session-level advisory lock elects one relay among all services; it is freed by PostgreSQL when its holder dies, and
the others try to take it every second. A row is deleted after the bus has acknowledged it: a crash in between publishes
it again, and ``Nats-Msg-Id`` lets the bus drop the copy. The one exception is a message larger than the bus takes: it
would hold up all others for ever, so it is dropped, which is said and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import asyncpg
import msgspec
import structlog

from libs.bus import Outbound
from libs.bus.headers import SUBJECT, TRACEPARENT, TYPE, event_headers, message_id
from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.events.subjects import event_source
from libs.retry import every, with_retry
from libs.telemetry import counter, gauge
from libs.tracing import SpanKind, is_tracing, parse_traceparent, record
from libs.waiting import wait_until_set

log = structlog.get_logger()

RELAY_LOCK: Final = 0x5E50_1073
"""Key of the advisory lock; any number that nothing else uses."""
CHANNEL: Final = "outbox"
BATCH: Final = 500
_RETRY_S: Final = 1.0
_LOOK_AGAIN_S: Final = 5.0  # a notification may be lost with its connection; this bounds the harm


DROPPED: Final = counter("resolute_outbox_dropped_total", "Messages that are larger than the bus takes")
RELAYING: Final = gauge("resolute_outbox_relaying", "1 in the process that publishes the outbox")
OLDEST: Final = gauge(
    "resolute_outbox_oldest_timestamp_seconds",
    "When the oldest message was written that is not on the bus yet, as Unix time; 0 when there is none",
)


class Publisher(Protocol):
    """What the relay needs of a ``libs.bus.Bus``, which says what they promise."""

    async def publish(
        self, subject: str, payload: bytes, *, msg_id: str | None = None, headers: Mapping[str, str] | None = None
    ) -> object: ...

    async def publish_ahead(self, messages: Sequence[Outbound]) -> int: ...

    def fits(self, message: Outbound) -> bool: ...


class Located(Protocol):
    """What the relay needs to make a connection of its own: ``libs.db.engine.Database``, or an address alone."""

    @property
    def url(self) -> str: ...


async def relay_outbox(db: Located, bus: Publisher) -> None:
    """Relay until cancelled; losing the database or the bus only delays."""
    await with_retry(
        lambda: _relay_while_connected(db.url, bus),
        is_transient=_is_interruption,
        on_retry=lambda error, attempt: log.warning("outbox.interrupted", error=str(error)),
        pause_s=every(_RETRY_S),
    )


def _is_interruption(error: Exception) -> bool:
    return isinstance(error, Unavailable) or is_connection_failure(error)


async def _relay_while_connected(url: str, bus: Publisher) -> None:
    connection = await asyncpg.connect(
        url, timeout=10, server_settings={"application_name": "resolute-relay", "tcp_keepalives_idle": "10"}
    )
    try:
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", RELAY_LOCK):
            OLDEST.set(0)  # somebody else knows
            await asyncio.sleep(_RETRY_S)
        RELAYING.set(1)
        log.info("outbox.relaying")
        cluster_id = str(await connection.fetchval("SELECT cluster_id FROM cluster"))
        news = asyncio.Event()
        await connection.add_listener(CHANNEL, lambda *_: news.set())
        while True:
            news.clear()
            if await _relay_batch(connection, bus, cluster_id) < BATCH:
                await wait_until_set(news, timeout_s=_LOOK_AGAIN_S)
    finally:
        RELAYING.set(0)
        connection.terminate()  # frees the lock at once, also when the connection is half dead


async def _relay_batch(connection: Any, bus: Publisher, cluster_id: str) -> int:
    rows = await connection.fetch(
        "SELECT id, subject, headers, payload, created_at FROM outbox ORDER BY id LIMIT $1", BATCH
    )
    messages = [_message(row, cluster_id) for row in rows]
    OLDEST.set(rows[0]["created_at"].timestamp() if rows else 0)
    done = 0
    try:
        while done < len(messages):
            done += await _publish_some(bus, messages[done:])
    finally:
        if done:
            await connection.execute("DELETE FROM outbox WHERE id = ANY($1)", [row["id"] for row in rows[:done]])
            if is_tracing():
                _trace(rows[:done], messages)
    OLDEST.set(0)
    return len(rows)


def _message(row: Mapping[str, Any], cluster_id: str) -> Outbound:
    """A row as it goes to the bus; one that has a type is an event, and becomes a CloudEvent."""
    msg_id = message_id(cluster_id, row["id"])
    headers = msgspec.json.decode(row["headers"])
    if TYPE in headers:
        headers = event_headers(
            id=msg_id,
            type=headers[TYPE],
            source=event_source(cluster_id),
            subject=headers[SUBJECT],
            time=row["created_at"],
            traceparent=headers.get(TRACEPARENT),
        )
    return Outbound(row["subject"], row["payload"], msg_id, headers)


def _trace(rows: Sequence[Mapping[str, Any]], messages: Sequence[Outbound]) -> None:
    """How long each message has waited, for the trace that it belongs to."""
    for row, message in zip(rows, messages, strict=False):
        if (parent := parse_traceparent(message.headers.get(TRACEPARENT))) is not None:
            attributes = {
                "messaging.system": "nats",
                "messaging.destination.name": message.subject,
                "messaging.message.id": message.msg_id or "",
            }
            began_at = row["created_at"]
            record("outbox.publish", parent=parent, began_at=began_at, kind=SpanKind.PRODUCER, attributes=attributes)


async def _publish_some(bus: Publisher, messages: Sequence[Outbound]) -> int:
    """Publish the first of ``messages``, at least one; returns how many are done with. Raises Unavailable."""
    first = messages[0]
    if not bus.fits(first):
        log.error("outbox.dropped", subject=first.subject, size=first.size)
        DROPPED.inc()
        return 1
    stored = await bus.publish_ahead(messages)
    if not stored:
        # On its own it says what is wrong, or puts it right, as when the streams are gone.
        await bus.publish(first.subject, first.payload, msg_id=first.msg_id, headers=first.headers)
    return stored or 1
