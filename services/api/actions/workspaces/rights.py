"""Rights on workspaces and projects that their owners have under basic authorization (docs/reference/platform.md 6).

They are asked for with the row that is locked, so that nobody changes what was given to another in between.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.workspaces import workspaces
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.workspaces.workspaces import Row


def require_on_workspace(rights: UserRights, action: Action, workspace: Row) -> None:
    """Raises PermissionDenied."""
    rights.require(action, workspace_id=workspace["id"], owner_ids=(workspace["owner_id"],))


async def require_on_project(connection: AsyncConnection, rights: UserRights, action: Action, project: Row) -> None:
    """Raises PermissionDenied."""
    owner = await connection.scalar(select(workspaces.c.owner_id).where(workspaces.c.id == project["workspace_id"]))
    rights.require(
        action,
        workspace_id=project["workspace_id"],
        owner_ids=(project["owner_id"],),
        parent_owner_ids=() if owner is None else (owner,),
    )
