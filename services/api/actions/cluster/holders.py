"""Finds the users, groups and workspaces that limits and weights of shares are set for."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Text, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.users import groups, users
from libs.db.tables.workspaces import workspaces
from libs.errors import InvalidRequest, NotFound
from services.api.wire.cluster.holders import HolderScope

_NAMES: Final = {
    HolderScope.USER: (users.c.id, func.lower(users.c.username, type_=Text)),
    HolderScope.GROUP: (groups.c.id, func.lower(groups.c.name, type_=Text)),
    HolderScope.WORKSPACE: (workspaces.c.id, func.lower(workspaces.c.name, type_=Text)),
}


def required_scope(scope: HolderScope | None) -> HolderScope:
    """Raises InvalidRequest."""
    if scope is None:
        raise InvalidRequest(f"scope: one of {', '.join(HolderScope)}")
    return scope


async def holder_id(connection: AsyncConnection, scope: HolderScope, name: str) -> int:
    """Raises NotFound."""
    column, known_as = _NAMES[scope]
    found = await connection.scalar(select(column).where(known_as == name.lower()))
    if found is None:
        raise NotFound(scope.value, name)
    ident: int = found
    return ident
