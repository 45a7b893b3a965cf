"""Makes, changes and deletes groups of users (docs/reference/platform.md 4).

Whoever changes a group locks its row first, so of two who change it at once the second sees what the first has done.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.users import group_members, groups, users
from libs.errors import AlreadyExists, InvalidRequest, NotFound
from libs.events.changes import GroupChanged
from services.api.queries.users.groups import group_details, lock_group
from services.api.wire.users.groups import CreateGroupRequest, GroupDetails, UpdateGroupRequest

PERSONAL: Final = "DeterminedPersonalGroup"
"""What the name of a group that stands for one user ends with."""
LONGEST_NAME: Final = 256
"""In characters; the index of the table could not hold names of any length."""


async def personal_group(connection: AsyncConnection, user_id: int) -> int:
    """The id of the group that stands for a user, which is made if need be; the user has to be there."""
    found = await connection.scalar(select(groups.c.id).where(groups.c.user_id == user_id))
    if found is not None:
        return int(found)
    new = insert(groups).values(name=f"{user_id}{PERSONAL}", user_id=user_id)
    # Somebody else may have made it meanwhile; the update of nothing gives its id all the same.
    put = new.on_conflict_do_update(index_elements=[groups.c.user_id], set_={"user_id": user_id})
    return int((await connection.execute(put.returning(groups.c.id))).scalar_one())


async def create_group(db: Database, request: CreateGroupRequest, *, now: datetime) -> GroupDetails:
    """Raises InvalidRequest, AlreadyExists, NotFound for a user; then there is no group."""
    async with db.transaction() as connection:
        group_id = await new_group(connection, request.name)
        await _add(connection, group_id, dict.fromkeys(request.add_users), now=now)
        return await group_details(connection, group_id)


async def new_group(connection: AsyncConnection, name: str) -> int:
    """The id of a group without members. Raises InvalidRequest, AlreadyExists."""
    check_group_name(name)
    new = insert(groups).values(name=name).on_conflict_do_nothing().returning(groups.c.id)
    group_id = (await connection.execute(new)).scalar_one_or_none()
    if group_id is None:
        raise _name_taken(name)
    await announce(connection, GroupChanged(group_id=group_id, what="created", name=name))
    return int(group_id)


async def update_group(db: Database, group_id: int, request: UpdateGroupRequest, *, now: datetime) -> GroupDetails:
    """Raises InvalidRequest, NotFound, AlreadyExists for a name or a member; then nothing has changed."""
    async with db.transaction() as connection:
        row = await lock_group(connection, group_id)
        if request.name and request.name != row["name"]:
            await rename_group(connection, group_id, request.name)
        await _add(connection, group_id, dict.fromkeys(request.add_users), now=now)
        await _remove(connection, group_id, dict.fromkeys(request.remove_users), now=now)
        if request.add_users or request.remove_users:
            await announce_members(connection, [group_id])
        return await group_details(connection, group_id)


async def rename_group(connection: AsyncConnection, group_id: int, name: str) -> None:
    """Of a group whose row is locked. Raises InvalidRequest, AlreadyExists."""
    check_group_name(name)
    if await connection.scalar(select(groups.c.id).where(groups.c.name == name)) is not None:
        raise _name_taken(name)
    await connection.execute(update(groups).where(groups.c.id == group_id).values(name=name))
    await announce(connection, GroupChanged(group_id=group_id, what="changed", name=name))


async def delete_group(db: Database, group_id: int, *, now: datetime) -> None:
    """With what was assigned to it. Raises NotFound."""
    async with db.transaction() as connection:
        row = await lock_group(connection, group_id)
        members = select(group_members.c.user_id).where(group_members.c.group_id == group_id)
        await connection.execute(update(users).where(users.c.id.in_(members)).values(modified_at=now))
        await connection.execute(delete(groups).where(groups.c.id == group_id))
        await announce(connection, GroupChanged(group_id=group_id, what="deleted", name=row["name"]))


async def put_members(
    connection: AsyncConnection, group_ids: Collection[int], user_ids: Collection[int], *, now: datetime
) -> None:
    """All of these users into all of these groups; who is in one already stays."""
    pairs = select(groups.c.id, users.c.id).where(any_of(groups.c.id, group_ids), any_of(users.c.id, user_ids))
    new = insert(group_members).from_select(["group_id", "user_id"], pairs)
    await connection.execute(new.on_conflict_do_nothing())
    await _touch(connection, user_ids, now=now)
    await announce_members(connection, group_ids)


async def take_members(
    connection: AsyncConnection, group_ids: Collection[int], user_ids: Collection[int], *, now: datetime
) -> None:
    """All of these users out of all of these groups, those that are in them."""
    in_them = any_of(group_members.c.group_id, group_ids)
    await connection.execute(delete(group_members).where(in_them, any_of(group_members.c.user_id, user_ids)))
    await _touch(connection, user_ids, now=now)
    await announce_members(connection, group_ids)


async def announce_members(connection: AsyncConnection, group_ids: Collection[int]) -> None:
    """Say that members of these groups came or went."""
    names = select(groups.c.id, groups.c.name).where(any_of(groups.c.id, group_ids)).order_by(groups.c.id)
    rows = await connection.execute(names)
    await announce(connection, *(GroupChanged(group_id=row.id, what="members", name=row.name) for row in rows))


async def assign_groups(
    db: Database, user_ids: Collection[int], *, add: Collection[int], remove: Collection[int], now: datetime
) -> None:
    """All of these users into all of the one, and out of all of the other groups; what is so already stays so.

    Raises NotFound for a group or a user; then nothing has changed.
    """
    async with db.transaction() as connection:
        # In one order: two who do this at once never wait for each other.
        for group_id in sorted({*add, *remove}):
            await lock_group(connection, group_id)
        await _check_users(connection, user_ids)
        await put_members(connection, add, user_ids, now=now)
        await take_members(connection, remove, user_ids, now=now)


async def _add(connection: AsyncConnection, group_id: int, user_ids: Collection[int], *, now: datetime) -> None:
    if not user_ids:
        return
    await _check_users(connection, user_ids)
    rows = select(groups.c.id, users.c.id).where(groups.c.id == group_id, any_of(users.c.id, user_ids))
    new = insert(group_members).from_select(["group_id", "user_id"], rows).on_conflict_do_nothing()
    added = set((await connection.execute(new.returning(group_members.c.user_id))).scalars())
    if there := [user_id for user_id in user_ids if user_id not in added]:
        raise AlreadyExists(f"row already exists: user {there[0]} is a member of the group")
    await _touch(connection, user_ids, now=now)


async def _remove(connection: AsyncConnection, group_id: int, user_ids: Collection[int], *, now: datetime) -> None:
    if not user_ids:
        return
    mine = group_members.c.group_id == group_id
    gone = delete(group_members).where(mine, any_of(group_members.c.user_id, user_ids))
    removed = set((await connection.execute(gone.returning(group_members.c.user_id))).scalars())
    for user_id in user_ids:
        if user_id not in removed:
            raise NotFound("member of the group with user id", user_id)
    await _touch(connection, user_ids, now=now)


async def _check_users(connection: AsyncConnection, user_ids: Collection[int]) -> None:
    query = select(users.c.id).where(any_of(users.c.id, user_ids))
    known = set((await connection.execute(query.with_for_update(key_share=True))).scalars())
    for user_id in user_ids:
        if user_id not in known:
            raise NotFound("user", user_id)


async def _touch(connection: AsyncConnection, user_ids: Collection[int], *, now: datetime) -> None:
    await connection.execute(update(users).where(any_of(users.c.id, user_ids)).values(modified_at=now))


def check_group_name(name: str) -> None:
    """Raises InvalidRequest for a name that no group can have."""
    if not name.strip():
        raise InvalidRequest("name: must be more than white space")
    if PERSONAL in name:
        raise InvalidRequest(f"group name cannot contain '{PERSONAL}'")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"name: must not be longer than {LONGEST_NAME} characters")


def _name_taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"row already exists: there is a group named '{name}'")
