"""Groups as a provider of identities sees and changes them: those of ``det user-group``, whoever made them.

Of members it sees those users that are its own. It neither removes the others nor replaces them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.users import group_members, groups, scim_users, users
from libs.errors import InvalidRequest, NotFound
from services.api.actions.users.groups import delete_group, new_group, put_members, rename_group, take_members
from services.api.queries.users.groups import lock_group
from services.api.scim.errors import no_such
from services.api.scim.filters import Equals
from services.api.scim.group_changes import GroupChange

Row = Mapping[Any, Any]
Members = Mapping[int, Sequence[Row]]
"""Group -> its users of the provider, with ``scim_id`` and ``username``."""

SEARCHED: Final[Mapping[str, ColumnElement[Any]]] = {
    "displayName": func.lower(groups.c.name),
    "externalId": func.lower(groups.c.external_id),
    "id": groups.c.id,
}
"""Attribute -> what a filter compares."""
_BY_NAME: Final = {name.lower(): column for name, column in SEARCHED.items()}
_LONGEST_ID: Final = 18
"""Digits of a number of 64 bits."""


async def list_groups(
    connection: AsyncConnection, wanted: Equals | None, *, offset: int, limit: int
) -> tuple[Sequence[Row], int]:
    """A page by id, and how many there are altogether."""
    query = select(groups).where(groups.c.user_id.is_(None))
    if wanted is not None and wanted.attribute == "id":
        query = query.where(groups.c.id == (_number(wanted.value) or 0))
    elif wanted is not None:
        query = query.where(_BY_NAME[wanted.attribute] == wanted.value.lower())
    total = await connection.scalar(select(func.count()).select_from(query.subquery())) or 0
    page = query.order_by(groups.c.id).offset(offset).limit(limit)
    return (await connection.execute(page)).mappings().all(), total


async def find_group(connection: AsyncConnection, ident: str) -> Row:
    """Raises NotFound."""
    query = select(groups).where(groups.c.id == _id(ident), groups.c.user_id.is_(None))
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise no_such("Group", ident)
    return row


async def members_of(connection: AsyncConnection, group_ids: Collection[int]) -> Members:
    query = (
        select(group_members.c.group_id, scim_users.c.id.label("scim_id"), users.c.username)
        .join(scim_users, scim_users.c.user_id == group_members.c.user_id)
        .join(users, users.c.id == scim_users.c.user_id)
        .where(any_of(group_members.c.group_id, group_ids))
        .order_by(users.c.id)
    )
    found = defaultdict[int, list[Row]](list)
    for row in (await connection.execute(query)).mappings():
        found[row["group_id"]].append(row)
    return found


async def create_group(db: Database, change: GroupChange, *, now: datetime) -> Row:
    """Raises InvalidRequest, AlreadyExists; then there is no group."""
    async with db.transaction() as connection:
        group_id = await new_group(connection, str(change.display_name))
        return await _changed(connection, group_id, change, now=now)


async def change_group(db: Database, ident: str, change: GroupChange, *, now: datetime) -> Row:
    """Raises NotFound, InvalidRequest, AlreadyExists; then nothing has changed."""
    async with db.transaction() as connection:
        try:
            row = await lock_group(connection, _id(ident))
        except NotFound:
            raise no_such("Group", ident) from None
        if change.display_name is not UNSET and change.display_name != row["name"]:
            await rename_group(connection, row["id"], str(change.display_name))
        return await _changed(connection, row["id"], change, now=now)


async def remove_group(db: Database, ident: str, *, now: datetime) -> None:
    """With what was assigned to it. Raises NotFound."""
    try:
        await delete_group(db, _id(ident), now=now)
    except NotFound:
        raise no_such("Group", ident) from None


async def _changed(connection: AsyncConnection, group_id: int, change: GroupChange, *, now: datetime) -> Row:
    if change.external_id is not UNSET:
        await connection.execute(update(groups).where(groups.c.id == group_id).values(external_id=change.external_id))
    known = select(scim_users.c.id, scim_users.c.user_id).where(any_of(scim_users.c.id, change.members))
    user_ids = {row.id: row.user_id for row in (await connection.execute(known)).all()}
    for ident, stays in change.members.items():
        if stays and ident not in user_ids:
            raise InvalidRequest(f"members: there is no user with the id '{ident[:100]}'")
    joining = {user_ids[ident] for ident, stays in change.members.items() if stays}
    leaving = {user_ids[ident] for ident, stays in change.members.items() if not stays and ident in user_ids}
    if not change.others:
        there = select(group_members.c.user_id).join(scim_users, scim_users.c.user_id == group_members.c.user_id)
        members = (await connection.execute(there.where(group_members.c.group_id == group_id))).scalars()
        leaving |= set(members) - joining
    if joining:
        await put_members(connection, [group_id], joining, now=now)
    if leaving:
        await take_members(connection, [group_id], leaving, now=now)
    return (await connection.execute(select(groups).where(groups.c.id == group_id))).mappings().one()


def _number(ident: str) -> int | None:
    return int(ident) if ident.isascii() and ident.isdecimal() and len(ident) <= _LONGEST_ID else None


def _id(ident: str) -> int:
    if (number := _number(ident)) is None:
        raise no_such("Group", ident)
    return number
