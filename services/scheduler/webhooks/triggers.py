"""Triggers as they are now, read for each batch of messages: whoever makes a webhook finds it working at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.bus import Message
from libs.db.engine import driver_connection
from libs.db.tables.webhooks import webhook_triggers, webhooks
from libs.webhooks.events import TriggerType
from libs.webhooks.scope import WebhookScope

_CLOCKS_DIFFER: Final = timedelta(seconds=2)
"""At most, between the bus and the database; an event from just before a webhook was made does no harm."""


class StoredTrigger(Struct, frozen=True, kw_only=True):
    id: int
    trigger_type: str
    condition: Mapping[str, Any]
    webhook: WebhookScope
    created_at: datetime

    def concerns(self, message: Message) -> bool:
        """Whether the webhook was there when the message came to the bus."""
        return message.stored_at is None or message.stored_at >= self.created_at - _CLOCKS_DIFFER


async def is_any_of(connection: AsyncConnection, *types: TriggerType) -> bool:
    """Whether some webhook has a trigger of one of these types."""
    driver = await driver_connection(connection)  # asked all the time, and nearly always in vain
    query = "SELECT EXISTS (SELECT FROM webhook_triggers WHERE trigger_type = ANY($1::text[]))"
    return bool(await driver.fetchval(query, types))


async def load_triggers(connection: AsyncConnection, *types: TriggerType) -> list[StoredTrigger]:
    query = (
        select(
            webhook_triggers.c.id,
            webhook_triggers.c.trigger_type,
            webhook_triggers.c.condition,
            webhook_triggers.c.webhook_id,
            webhooks.c.name,
            webhooks.c.mode,
            webhooks.c.workspace_id,
            webhooks.c.created_at,
        )
        .join(webhooks, webhooks.c.id == webhook_triggers.c.webhook_id)
        .where(webhook_triggers.c.trigger_type.in_(types))
        .order_by(webhook_triggers.c.id)
    )
    return [
        StoredTrigger(
            id=row.id,
            trigger_type=row.trigger_type,
            condition=row.condition,
            webhook=WebhookScope(id=row.webhook_id, name=row.name, mode=row.mode, workspace_id=row.workspace_id),
            created_at=row.created_at,
        )
        for row in await connection.execute(query)
    ]
