"""Who may change a webhook: under basic authorization administrators, and the owner of its workspace
(docs/reference/platform.md 6)."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.workspaces import workspaces
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights


async def require_webhook_edit(connection: AsyncConnection, rights: UserRights, workspace_id: int | None) -> None:
    """Raises NotFound for a workspace that the caller does not see, PermissionDenied.

    workspace_id  None is that of a webhook for every workspace
    """
    if workspace_id is None:
        rights.require(Action.EDIT_GLOBAL_WEBHOOKS)
        return
    rights.require_seen(Action.EDIT_WEBHOOKS, "workspace", workspace_id, workspace_id=workspace_id)
    owner = await connection.scalar(select(workspaces.c.owner_id).where(workspaces.c.id == workspace_id))
    rights.require(Action.EDIT_WEBHOOKS, workspace_id=workspace_id, owner_ids=() if owner is None else (owner,))
