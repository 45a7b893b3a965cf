"""Makes, changes and deletes webhooks (docs/reference/platform.md 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.webhooks import webhook_triggers, webhooks
from libs.errors import AlreadyExists, FailedPrecondition, InvalidRequest, NotFound
from libs.ids import new_uuid
from libs.outbound.addresses import Network
from libs.webhooks.events import TriggerType as StoredTrigger
from libs.webhooks.events import WebhookType as StoredType
from libs.webhooks.scope import WORKSPACE
from services.api.access.rights.rights import UserRights
from services.api.actions.webhooks.rights import require_webhook_edit
from services.api.actions.webhooks.validation import check_event_webhook, check_url, check_webhook
from services.api.queries.webhooks.webhooks import webhook_row, wire_event_webhook, wire_webhook
from services.api.queries.workspaces.workspaces import locked_workspace
from services.api.wire.webhooks.event_webhooks import EventWebhook
from services.api.wire.webhooks.webhooks import Webhook, WebhookMode

MOST_WEBHOOKS: Final = 1000
"""Each has connections of its own."""
_COUNTING: Final = 0x5E50_1177
"""Key of the advisory lock under which webhooks are counted and made."""


async def create_webhook(db: Database, rights: UserRights, webhook: Webhook, *, allowed: Sequence[Network]) -> Webhook:
    """Makes the webhook. One without a name gets a name of its own, as in the reference.

    Raises InvalidRequest, NotFound for its workspace, PermissionDenied, FailedPrecondition, AlreadyExists.
    """
    check_webhook(webhook, allowed)
    workspace_id = webhook.workspace_id or None
    async with db.transaction() as connection:
        workspace = await locked_workspace(connection, workspace_id) if workspace_id is not None else None
        await require_webhook_edit(connection, rights, workspace_id)
        if workspace is not None and workspace["state"]:
            raise FailedPrecondition(f"workspace ({workspace_id}) is being deleted and cannot add new webhooks")
        row = await _insert(
            connection,
            name=webhook.name if webhook.name.strip() else new_uuid(),
            url=webhook.url,
            webhook_type=_tail(webhook.webhook_type, "WEBHOOK_TYPE_"),
            mode=WORKSPACE if webhook.mode is WebhookMode.UNSPECIFIED else _tail(webhook.mode, "WEBHOOK_MODE_"),
            workspace_id=workspace_id,
        )
        triggers = [
            {
                "webhook_id": row["id"],
                "trigger_type": _tail(each.trigger_type, "TRIGGER_TYPE_"),
                "condition": each.condition or {},
            }
            for each in webhook.triggers
        ]
        return wire_webhook(row, await _insert_triggers(connection, triggers))


async def create_event_webhook(
    db: Database, rights: UserRights, webhook: EventWebhook, *, allowed: Sequence[Network]
) -> EventWebhook:
    """Raises InvalidRequest, PermissionDenied, AlreadyExists."""
    check_event_webhook(webhook, allowed)
    async with db.transaction() as connection:
        await require_webhook_edit(connection, rights, None)
        row = await _insert(connection, name=webhook.name, url=webhook.url, webhook_type=StoredType.CLOUDEVENTS)
        triggers = [
            {"webhook_id": row["id"], "trigger_type": StoredTrigger.EVENT, "condition": {"type": each}}
            for each in dict.fromkeys(webhook.types)
        ]
        stored = await _insert_triggers(connection, triggers)
        return wire_event_webhook(row, [trigger["condition"] for trigger in stored])


async def set_webhook_url(
    db: Database,
    rights: UserRights,
    webhook_id: int,
    url: str,
    *,
    allowed: Sequence[Network],
    for_events: bool = False,
) -> None:
    """What waits to be delivered goes to the new URL. Raises InvalidRequest, NotFound, PermissionDenied."""
    check_url(url, allowed)
    async with db.transaction() as connection:
        await _check_editable(connection, rights, webhook_id, for_events=for_events)
        await connection.execute(update(webhooks).where(webhooks.c.id == webhook_id).values(url=url))


async def delete_webhook(db: Database, rights: UserRights, webhook_id: int, *, for_events: bool = False) -> None:
    """With all that it is still to be told. Raises NotFound, PermissionDenied."""
    async with db.transaction() as connection:
        await _check_editable(connection, rights, webhook_id, for_events=for_events)
        await connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))


async def _check_editable(
    connection: AsyncConnection, rights: UserRights, webhook_id: int, *, for_events: bool
) -> None:
    row = await webhook_row(connection, webhook_id, rights, for_events=for_events)
    if row is None:
        raise NotFound("webhook", webhook_id)
    await require_webhook_edit(connection, rights, row["workspace_id"])


async def _insert(connection: AsyncConnection, **values: Any) -> Any:
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _COUNTING})
    count = await connection.scalar(select(func.count()).select_from(webhooks))
    if (count or 0) >= MOST_WEBHOOKS:
        raise InvalidRequest(f"there are {MOST_WEBHOOKS} webhooks, and no more are allowed")
    made = upsert(webhooks).values(**values).on_conflict_do_nothing().returning(webhooks)
    row = (await connection.execute(made)).mappings().one_or_none()
    if row is None:
        raise AlreadyExists(f"webhook '{values['name']}' already exists")
    return row


async def _insert_triggers(connection: AsyncConnection, rows: list[dict[str, Any]]) -> list[Any]:
    made = insert(webhook_triggers).returning(webhook_triggers, sort_by_parameter_order=True)
    return list((await connection.execute(made, rows)).mappings())


def _tail(name: str, prefix: str) -> str:
    return str(name).removeprefix(prefix)
