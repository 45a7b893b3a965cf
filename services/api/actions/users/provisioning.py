"""Users whom somebody else vouches for, a login provider or SCIM: made and kept as it says
(docs/reference/platform.md 2.5).

They have no password here. Whatever vouches for them decides over their groups whole: membership is made equal to what
it says, and groups that are missing are made.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import AgentIdentity
from libs.db.any_of import any_of
from libs.db.outbox import announce
from libs.db.tables.users import group_members, groups, users
from libs.errors import AlreadyExists, InvalidRequest
from libs.events.changes import GroupChanged, UserChanged
from services.api.access import passwords
from services.api.actions.users.groups import check_group_name, put_members, take_members
from services.api.actions.users.users import check_display_name, insert_user, revoke_tokens
from services.api.queries.users.users import Row, user_by_id, users_named_like
from services.api.wire.users.users import NewUser

_NAMES_LOCK: Final = 0x5E50_4E41
"""First key of the advisory locks of names that are being provisioned."""

log = structlog.get_logger(__name__)


async def insert_remote_user(
    connection: AsyncConnection, username: str, *, display_name: str = "", active: bool = True, now: datetime
) -> Row:
    """The row of a new user who logs in elsewhere.

    A display name that cannot be had here, because another user has it or for its characters, is left out.
    Raises InvalidRequest for the username, AlreadyExists for a name that differs from another one by case only, too.
    """
    # Two at the same time, who differ by case only, would not see each other.
    lock = func.pg_advisory_xact_lock(_NAMES_LOCK, func.hashtext(func.lower(username.strip())))
    await connection.execute(select(lock))
    if await users_named_like(connection, username.strip()):
        raise AlreadyExists("user already exists")
    usable = await _usable_display_name(connection, display_name, user_id=None, username=username)
    new = NewUser(username=username, display_name=usable or "", active=active, remote=True)
    return await insert_user(connection, new, secret=passwords.NO_PASSWORD, now=now)


async def update_remote_user(
    connection: AsyncConnection,
    before: Row,
    *,
    display_name: str | None = None,
    agent: AgentIdentity | None = None,
    active: bool | None = None,
    now: datetime,
) -> Row:
    """The row after what is not None was taken over; ``before`` is locked. Nothing is written when nothing differs."""
    wanted: dict[str, Any] = {}
    if display_name is not None:
        usable = await _usable_display_name(
            connection, display_name, user_id=before["id"], username=before["username"], admin=before["admin"]
        )
        if usable is not None:
            wanted["display_name"] = usable
    if agent is not None:
        wanted |= {
            "agent_uid": agent.uid,
            "agent_gid": agent.gid,
            "agent_user": agent.user,
            "agent_group": agent.group,
        }
    if active is not None:
        wanted["active"] = active
    changed = {name: value for name, value in wanted.items() if before[name] != value}
    if not changed:
        return before
    user_id = before["id"]
    await connection.execute(update(users).where(users.c.id == user_id).values(modified_at=now, **changed))
    if changed.get("active") is False:
        await revoke_tokens(connection, user_id, now=now)
    await announce(connection, UserChanged(user_id=user_id, what="changed", username=before["username"]))
    return await user_by_id(connection, user_id)


async def lock_groups_for(connection: AsyncConnection, user_id: int | None, names: Collection[str]) -> frozenset[int]:
    """The ids of the groups of these names; those that are missing are made, and names that no group can have left out.

    They are locked until the transaction ends, together with those that the user is in: ask for them before the lock of
    the user, which is the order in which everybody else takes these.
    """
    usable = sorted(name for name in names if _can_be_group(name))
    if usable:
        known = set((await connection.execute(select(groups.c.name).where(any_of(groups.c.name, usable)))).scalars())
        if missing := [{"name": name} for name in usable if name not in known]:
            new = insert(groups).values(missing).on_conflict_do_nothing().returning(groups.c.id, groups.c.name)
            made = (await connection.execute(new)).all()
            await announce(connection, *(GroupChanged(group_id=row.id, what="created", name=row.name) for row in made))
    mine = select(group_members.c.group_id).where(group_members.c.user_id == user_id)
    there = (any_of(groups.c.name, usable) | groups.c.id.in_(mine)) & groups.c.user_id.is_(None)
    query = select(groups.c.id, groups.c.name).where(there).order_by(groups.c.id).with_for_update()
    wanted = set(usable)
    return frozenset(row.id for row in (await connection.execute(query)).all() if row.name in wanted)


async def set_membership(
    connection: AsyncConnection, user_id: int, group_ids: Collection[int], *, now: datetime
) -> None:
    """The user is in these groups, and in no others."""
    mine = group_members.c.user_id == user_id
    before = set((await connection.execute(select(group_members.c.group_id).where(mine))).scalars())
    wanted = set(group_ids)
    if gone := before - wanted:
        await take_members(connection, gone, [user_id], now=now)
    if new := wanted - before:
        await put_members(connection, new, [user_id], now=now)


async def _usable_display_name(
    connection: AsyncConnection, name: str, *, user_id: int | None, username: str, admin: bool = False
) -> str | None:
    """None for one that cannot be had: somebody else decides about it, and a login must not fail of it."""
    try:
        await check_display_name(connection, name.strip(), user_id=user_id, admin=admin)
    except (InvalidRequest, AlreadyExists) as error:
        log.warning("user.display_name_left_out", user=username[:100], reason=str(error))
        return None
    return name.strip()


def _can_be_group(name: str) -> bool:
    try:
        check_group_name(name)
        if not name.isprintable():
            raise InvalidRequest("name: must not have control characters")
    except InvalidRequest as error:
        log.warning("group.left_out", name=name[:100], reason=str(error))
        return False
    return True
