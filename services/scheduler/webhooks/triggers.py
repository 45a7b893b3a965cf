"""Triggers as they are now, read for each batch of messages: whoever makes a webhook finds it working at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.bus import Message
from libs.db.engine import Database, driver_connection
from libs.webhooks.events import TriggerType
from libs.webhooks.scope import WebhookScope

_CLOCKS_DIFFER: Final = timedelta(seconds=2)
"""At most, between the bus and the database; an event from just before a webhook was made does no harm."""
_TRIGGERS: Final = """
    SELECT t.id, t.trigger_type, t.condition, t.webhook_id, w.name, w.mode, w.workspace_id, w.created_at
    FROM webhook_triggers t JOIN webhooks w ON w.id = t.webhook_id
    WHERE t.trigger_type = ANY($1::text[]) ORDER BY t.id
"""


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


async def load_triggers(db: Database, *types: TriggerType) -> list[StoredTrigger]:
    """All that are of one of these types, by id."""
    async with db.read_prepared() as connection:  # asked with each change of a state, and nearly always in vain
        found = await connection.fetch(_TRIGGERS, types)
    return [
        StoredTrigger(
            id=row["id"],
            trigger_type=row["trigger_type"],
            condition=row["condition"],
            webhook=WebhookScope(
                id=row["webhook_id"], name=row["name"], mode=row["mode"], workspace_id=row["workspace_id"]
            ),
            created_at=row["created_at"],
        )
        for row in found
    ]
