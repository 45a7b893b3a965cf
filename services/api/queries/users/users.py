"""Users as the REST interface shows them (docs/reference/platform.md 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.users import groups, role_assignments, users
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.wire.base import timestamp
from services.api.wire.ordering import OrderBy
from services.api.wire.users.users import AgentUserGroup, GetUsersQuery, SortUsers, User

Row = Mapping[Any, Any]

_SORT_COLUMN = {
    SortUsers.UNSPECIFIED: users.c.id,
    SortUsers.DISPLAY_NAME: natural(users.c.display_name),
    SortUsers.USER_NAME: natural(users.c.username),
    SortUsers.ADMIN: users.c.admin,
    SortUsers.ACTIVE: users.c.active,
    SortUsers.MODIFIED_TIME: users.c.modified_at,
    SortUsers.NAME: natural(func.coalesce(func.nullif(users.c.display_name, ""), users.c.username)),
    SortUsers.LAST_AUTH_TIME: users.c.last_auth_at,
    SortUsers.REMOTE: users.c.remote,
}


class UserNotFound(NotFound):
    """Clients know this text."""

    def __init__(self) -> None:
        Exception.__init__(self, "user not found")


def wire_user(row: Row) -> User:
    """A row of ``users`` as clients see it."""
    linked = row["agent_user"] is not None
    return User(
        id=row["id"],
        username=row["username"],
        admin=row["admin"],
        active=row["active"],
        agent_user_group=AgentUserGroup(
            agent_uid=row["agent_uid"],
            agent_gid=row["agent_gid"],
            agent_user=row["agent_user"],
            agent_group=row["agent_group"],
        )
        if linked
        else None,
        display_name=row["display_name"],
        modified_at=timestamp(row["modified_at"]),
        remote=row["remote"],
        last_auth_at=timestamp(row["last_auth_at"]),
    )


async def user_by_id(connection: AsyncConnection, user_id: int, *, lock: bool = False) -> Row:
    """Raises NotFound."""
    query = select(users).where(users.c.id == user_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).mappings().one_or_none()
    if row is None:
        raise UserNotFound
    return row


async def user_by_name(connection: AsyncConnection, username: str) -> Row | None:
    """Names are compared exactly, and differ by case."""
    return (await connection.execute(select(users).where(users.c.username == username))).mappings().one_or_none()


async def users_named_like(connection: AsyncConnection, username: str) -> list[Row]:
    """Users whose names are this one but for upper and lower case, in the order of their ids."""
    same = func.lower(users.c.username) == func.lower(username)
    return list((await connection.execute(select(users).where(same).order_by(users.c.id))).mappings())


async def list_users(connection: AsyncConnection, query: GetUsersQuery) -> list[User]:
    """Every user that matches, sorted."""
    statement = select(users)
    if query.name:
        statement = statement.where(
            or_(
                users.c.username.icontains(query.name, autoescape=True),
                users.c.display_name.icontains(query.name, autoescape=True),
            )
        )
    if isinstance(query.active, bool):
        statement = statement.where(users.c.active.is_(query.active))
    if isinstance(query.admin, bool):
        statement = statement.where(users.c.admin.is_(query.admin))
    if query.role_id_assigned_directly_to_user:
        holders = select(groups.c.user_id).join(role_assignments, role_assignments.c.group_id == groups.c.id)
        wanted = any_of(role_assignments.c.role_id, query.role_id_assigned_directly_to_user)
        statement = statement.where(users.c.id.in_(holders.where(wanted, groups.c.user_id.is_not(None))))
    column = _SORT_COLUMN[query.sort_by]
    descending = query.order_by is OrderBy.DESC
    statement = statement.order_by(
        column.desc().nulls_last() if descending else column.asc(), users.c.id.desc() if descending else users.c.id
    )
    return [wire_user(row) for row in (await connection.execute(statement)).mappings()]
