"""Webhooks as the REST interface shows them (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, false, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.webhooks import webhook_triggers, webhooks
from libs.db.tables.workspaces import workspaces
from libs.webhooks.events import WebhookType as StoredType
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.wire.base import struct_value
from services.api.wire.webhooks.event_webhooks import EventWebhook
from services.api.wire.webhooks.webhooks import Trigger, TriggerType, Webhook, WebhookMode, WebhookType


def _seen_by(rights: UserRights) -> ColumnElement[bool]:
    """Under basic authorization global ones and those of the caller's own workspaces; all for an administrator."""
    is_global = webhooks.c.workspace_id.is_(None)
    everywhere = true() if rights.may(Action.VIEW_GLOBAL_WEBHOOKS) else false()
    owner = select(workspaces.c.owner_id).where(workspaces.c.id == webhooks.c.workspace_id).scalar_subquery()
    return or_(and_(is_global, everywhere), rights.where(Action.VIEW_WEBHOOKS, webhooks.c.workspace_id, owner=owner))


async def webhook_row(
    connection: AsyncConnection, webhook_id: int, rights: UserRights, *, for_events: bool = False
) -> RowMapping | None:
    """The row, if it is of the kind that is asked for, and the caller may see it."""
    of_kind = webhooks.c.webhook_type == StoredType.CLOUDEVENTS
    query = select(webhooks).where(webhooks.c.id == webhook_id, of_kind if for_events else ~of_kind, _seen_by(rights))
    return (await connection.execute(query)).mappings().one_or_none()


async def list_webhooks(connection: AsyncConnection, rights: UserRights) -> list[Webhook]:
    query = select(webhooks).where(webhooks.c.webhook_type != StoredType.CLOUDEVENTS, _seen_by(rights))
    rows = (await connection.execute(query.order_by(webhooks.c.id))).mappings().all()
    triggers = await _triggers(connection, rows)
    return [wire_webhook(row, triggers.get(row["id"], [])) for row in rows]


async def list_event_webhooks(connection: AsyncConnection) -> list[EventWebhook]:
    query = select(webhooks).where(webhooks.c.webhook_type == StoredType.CLOUDEVENTS)
    rows = (await connection.execute(query.order_by(webhooks.c.id))).mappings().all()
    triggers = await _triggers(connection, rows)
    return [wire_event_webhook(row, [each["condition"] for each in triggers.get(row["id"], [])]) for row in rows]


async def _triggers(connection: AsyncConnection, rows: Any) -> dict[int, list[RowMapping]]:
    of_them = any_of(webhook_triggers.c.webhook_id, [row["id"] for row in rows])
    found: dict[int, list[RowMapping]] = {}
    for row in (await connection.execute(select(webhook_triggers).where(of_them).order_by("id"))).mappings():
        found.setdefault(row["webhook_id"], []).append(row)
    return found


def wire_webhook(row: RowMapping, triggers: list[RowMapping]) -> Webhook:
    return Webhook(
        id=row["id"],
        url=row["url"],
        triggers=[
            Trigger(
                id=trigger["id"],
                trigger_type=TriggerType[trigger["trigger_type"]],
                condition=struct_value(trigger["condition"]),
                webhook_id=row["id"],
            )
            for trigger in triggers
        ],
        webhook_type=WebhookType[row["webhook_type"]],
        name=row["name"],
        workspace_id=row["workspace_id"] or 0,
        mode=WebhookMode[row["mode"]],
    )


def wire_event_webhook(row: RowMapping, conditions: list[dict[str, Any]]) -> EventWebhook:
    return EventWebhook(id=row["id"], name=row["name"], url=row["url"], types=[each["type"] for each in conditions])
