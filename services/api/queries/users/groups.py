"""Groups of users as the REST interface shows them (docs/reference/platform.md 4).

The group that stands for one user is in no list, and nobody finds it by its id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.users import group_members, groups, users
from libs.errors import InvalidRequest, NotFound
from services.api.queries.users.users import wire_user
from services.api.wire.base import Pagination
from services.api.wire.users.groups import Group, GroupDetails, GroupSearchResult, SearchGroupsRequest
from services.api.wire.users.users import User

MOST_LISTED: Final = 500


async def lock_group(connection: AsyncConnection, group_id: int) -> Mapping[Any, Any]:
    """The row, which nobody else changes until the transaction ends. Raises NotFound."""
    query = select(groups).where(groups.c.id == group_id, groups.c.user_id.is_(None)).with_for_update()
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise NotFound("group", group_id)
    return row


async def group_details(connection: AsyncConnection, group_id: int) -> GroupDetails:
    """Raises NotFound."""
    query = select(groups).where(groups.c.id == group_id, groups.c.user_id.is_(None))
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise NotFound("group", group_id)
    members = await members_of(connection, [group_id])
    return GroupDetails(group_id=row.id, name=row.name, users=members[group_id])


async def members_of(connection: AsyncConnection, group_ids: Iterable[int]) -> Mapping[int, list[User]]:
    """Group -> its users, by id; no entry counts as nobody."""
    query = (
        select(group_members.c.group_id, users)
        .join(users, users.c.id == group_members.c.user_id)
        .where(any_of(group_members.c.group_id, group_ids))
        .order_by(users.c.id)
    )
    found = defaultdict[int, list[User]](list)
    for row in (await connection.execute(query)).mappings():
        found[row[group_members.c.group_id]].append(wire_user(row))
    return found


async def search_groups(
    connection: AsyncConnection, request: SearchGroupsRequest, *, visible: ColumnElement[bool]
) -> tuple[list[GroupSearchResult], Pagination]:
    """One page, by id. Raises InvalidRequest for a page without a size."""
    if not 1 <= request.limit <= MOST_LISTED:
        raise InvalidRequest(f"Bad request: limit is required and must be <= {MOST_LISTED}")
    if request.offset < 0:
        raise InvalidRequest("offset: must not be negative")
    wanted = select(groups.c.id, groups.c.name).where(groups.c.user_id.is_(None), visible)
    if request.name:
        wanted = wanted.where(groups.c.name == request.name)
    if isinstance(request.user_id, int) and request.user_id:
        mine = select(group_members.c.group_id).where(group_members.c.user_id == request.user_id)
        wanted = wanted.where(groups.c.id.in_(mine))
    total = await connection.scalar(select(func.count()).select_from(wanted.subquery())) or 0
    count = select(func.count()).where(group_members.c.group_id == groups.c.id).scalar_subquery()
    page = wanted.add_columns(count.label("members")).order_by(groups.c.id)
    rows = (await connection.execute(page.offset(request.offset).limit(request.limit))).all()
    start = min(request.offset, total)
    pagination = Pagination(
        offset=request.offset, limit=request.limit, start_index=start, end_index=start + len(rows), total=total
    )
    found = [GroupSearchResult(group=Group(group_id=row.id, name=row.name), num_members=row.members) for row in rows]
    return found, pagination


async def is_member(connection: AsyncConnection, *, group_id: int, user_id: int) -> bool:
    query = select(group_members.c.user_id).filter_by(group_id=group_id, user_id=user_id)
    return (await connection.execute(query)).first() is not None
