"""Users as the REST interface shows them (docs/reference/platform.md 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection
from libs.db.tables.users import groups, role_assignments, users
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.queries.prepared import ESCAPE, PreparedQuery, escaped, given, one_of_given
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


_BY_ID: Final = PreparedQuery(select(users).where(users.c.id == given("id", users.c.id)))
_BY_NAME: Final = PreparedQuery(select(users).where(users.c.username == given("name", users.c.username)))


async def user_by_id(connection: AsyncConnection | DriverConnection, user_id: int) -> Row:
    """Raises NotFound."""
    for row in await _BY_ID.records(connection, id=user_id):
        return row
    raise UserNotFound


async def locked_user(connection: AsyncConnection, user_id: int) -> Row:
    """The same, locked until the transaction ends."""
    query = select(users).where(users.c.id == user_id).with_for_update()
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise UserNotFound
    return row


async def user_by_name(connection: AsyncConnection | DriverConnection, username: str) -> Row | None:
    """Names are compared exactly, and differ by case."""
    rows = await _BY_NAME.records(connection, name=username)
    return rows[0] if rows else None


async def users_named_like(connection: AsyncConnection, username: str) -> list[Row]:
    """Users whose names are this one but for upper and lower case, in the order of their ids."""
    same = func.lower(users.c.username) == func.lower(username)
    return list((await connection.execute(select(users).where(same).order_by(users.c.id))).mappings())


async def list_users(connection: AsyncConnection | DriverConnection, query: GetUsersQuery) -> list[User]:
    """Every user that matches, sorted."""
    wanted: dict[str, Any] = {}
    if query.name:
        wanted["name"] = escaped(query.name)
    if isinstance(query.active, bool):
        wanted["active"] = query.active
    if isinstance(query.admin, bool):
        wanted["admin"] = query.admin
    if query.role_id_assigned_directly_to_user:
        wanted["roles"] = query.role_id_assigned_directly_to_user
    listing = _listing(query.sort_by, query.order_by, frozenset(wanted))
    return [wire_user(row) for row in await listing.records(connection, **wanted)]


_NAME: Final = given("name", users.c.username)
_HOLDERS: Final = (
    select(groups.c.user_id)
    .join(role_assignments, role_assignments.c.group_id == groups.c.id)
    .where(one_of_given(role_assignments.c.role_id, "roles"), groups.c.user_id.is_not(None))
)
_CONDITIONS: Final[Mapping[str, ColumnElement[bool]]] = {
    "name": or_(
        users.c.username.icontains(_NAME, escape=ESCAPE),
        users.c.display_name.icontains(_NAME, escape=ESCAPE),
    ),
    "active": users.c.active == given("active", users.c.active),
    "admin": users.c.admin == given("admin", users.c.admin),
    "roles": users.c.id.in_(_HOLDERS),
}


@cache
def _listing(sort_by: SortUsers, order_by: OrderBy, wanted: frozenset[str]) -> PreparedQuery:
    """All users, in one of the few orders that there are, that fulfil the conditions of these names."""
    column = _SORT_COLUMN[sort_by]
    descending = order_by is OrderBy.DESC
    order = (column.desc().nulls_last(), users.c.id.desc()) if descending else (column.asc(), users.c.id)
    return PreparedQuery(select(users).where(*(_CONDITIONS[name] for name in sorted(wanted))).order_by(*order))
