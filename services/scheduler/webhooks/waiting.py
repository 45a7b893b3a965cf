"""Rows of deliveries as the sender works with them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from sqlalchemy import delete, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import driver_connection
from libs.db.tables.webhooks import webhook_deliveries
from libs.webhooks.events import WebhookEvent

_DUE: Final = (
    "SELECT w.id FROM webhooks w WHERE EXISTS"
    " (SELECT FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.next_at <= now())"
)
_TAKE: Final = text(
    "SELECT d.id, d.event, d.attempts, d.created_at, w.url, w.webhook_type"
    " FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id"
    " WHERE d.webhook_id = :webhook AND d.next_at <= now() ORDER BY d.next_at, d.id LIMIT :most"
)
_POSTPONE: Final = text(
    "UPDATE webhook_deliveries SET attempts = attempts + 1, next_at = now() + make_interval(secs => :seconds)"
    " WHERE id = :id"
)
_FORGET: Final = text(
    "DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
    " (PARTITION BY webhook_id ORDER BY id DESC) AS place FROM webhook_deliveries) ranked WHERE place > :most)"
)


class WaitingDelivery(Struct, frozen=True, kw_only=True):
    id: int
    event: WebhookEvent
    attempts: int
    """Those that failed."""
    created_at: datetime
    url: str
    webhook_type: str


async def due_webhooks(connection: AsyncConnection) -> list[int]:
    """Webhooks that something waits for, which may be sent now."""
    driver = await driver_connection(connection)  # asked all the time, and nearly always in vain
    return [row["id"] for row in await driver.fetch(_DUE)]


async def take_due(connection: AsyncConnection, webhook_id: int, *, most: int) -> list[WaitingDelivery]:
    """What waits longest; the rows stay until they are settled."""
    rows = await connection.execute(_TAKE, {"webhook": webhook_id, "most": most})
    return [
        WaitingDelivery(**{**row._mapping, "event": msgspec.convert(_document(row.event), WebhookEvent)})
        for row in rows
    ]


def _document(event: object) -> object:
    # Read without the column's type, the driver gives a jsonb as text.
    return msgspec.json.decode(event) if isinstance(event, str) else event


async def settle(connection: AsyncConnection, done: Collection[int]) -> None:
    """These are delivered, or will never be."""
    if done:
        await connection.execute(delete(webhook_deliveries).where(any_of(webhook_deliveries.c.id, sorted(done))))


async def postpone(connection: AsyncConnection, delivery_id: int, *, seconds: float) -> None:
    await connection.execute(_POSTPONE, {"id": delivery_id, "seconds": seconds})


async def forget_oldest(connection: AsyncConnection, *, most: int) -> int:
    """How many were dropped because more than ``most`` wait for one webhook."""
    return (await connection.execute(_FORGET, {"most": most})).rowcount
