"""Who may see and change a webhook: under basic authorization administrators, and the owner of its workspace
(docs/reference/platform.md 6)."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.workspaces import workspaces
from libs.errors import PermissionDenied
from services.api.access.principal import Principal


def whose_webhooks(principal: Principal) -> int | None:
    """Of whose workspaces the caller sees webhooks, beside those of all workspaces; None is everybody's."""
    return None if principal.admin else principal.user_id


async def require_webhook_edit(connection: AsyncConnection, principal: Principal, workspace_id: int | None) -> None:
    """Raises PermissionDenied. ``workspace_id`` None is that of a webhook for every workspace."""
    if principal.admin:
        return
    if workspace_id is None:
        raise PermissionDenied("only admin privileged users can edit webhooks of all workspaces")
    owner = await connection.scalar(select(workspaces.c.owner_id).where(workspaces.c.id == workspace_id))
    if owner != principal.user_id:
        raise PermissionDenied("only its owner or an administrator can edit webhooks of a workspace")
