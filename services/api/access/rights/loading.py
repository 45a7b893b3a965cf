"""Reads the roles of a caller, where roles count."""

from __future__ import annotations

from sqlalchemy import Select, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import AuthzConfig
from libs.db.engine import Database
from libs.db.tables.users import group_members, groups, role_assignments
from services.api.access.principal import Principal
from services.api.access.rights.rights import Grants, UserRights


def groups_of(user_id: int) -> Select[tuple[int]]:
    """Ids of the groups that a user is in, the one that stands for the user included."""
    own = select(groups.c.id).where(groups.c.user_id == user_id)
    others = select(group_members.c.group_id).where(group_members.c.user_id == user_id)
    both = union(own, others).subquery()
    return select(both.c.id)


async def grants_of(connection: AsyncConnection, user_id: int) -> Grants:
    query = select(role_assignments.c.role_id, role_assignments.c.workspace_id)
    rows = await connection.execute(query.where(role_assignments.c.group_id.in_(groups_of(user_id))))
    return Grants.of((row.role_id, row.workspace_id) for row in rows)


async def rights_of(db: Database, authz: AuthzConfig, principal: Principal) -> UserRights:
    """What the caller may do under the configured type of authorization."""
    if authz.type == "basic" or principal.is_narrow:
        return UserRights(principal)
    async with db.read() as connection:
        grants = await grants_of(connection, principal.user_id)
    return UserRights(principal, grants) if authz.by_roles else UserRights(principal, would_be=grants)
