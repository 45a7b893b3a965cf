"""Creates and changes users (docs/reference/platform.md 3)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import UNSET, UnsetType
from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.users import user_sessions, users
from libs.errors import AlreadyExists, InvalidRequest
from libs.events.changes import UserChanged
from services.api.access import passwords
from services.api.actions.posix_identity import posix_columns
from services.api.actions.users.groups import personal_group
from services.api.queries.users.users import Row, locked_user, user_by_id, user_by_name
from services.api.wire.users.users import AgentUserGroup, NewUser, PatchUser

SHORTEST_NAME: Final = 2
LONGEST_NAME: Final = 256
"""In characters; the index of the table could not hold names of any length."""
RESERVED: Final = "determined"
RESERVED_FOR: Final = 2
"""The id of the built-in user of that name, who may go by another one and come back."""


async def create_user(db: Database, new: NewUser, *, password: str, is_hashed: bool, now: datetime) -> Row:
    """The row of the new user. Raises InvalidRequest, or AlreadyExists for a name that is taken."""
    _check_names(new)
    if new.remote and password:
        raise InvalidRequest("cannot set password for remote user")
    secret = passwords.NO_PASSWORD if new.remote else await _kept(password, is_hashed=is_hashed)
    async with db.transaction() as connection:
        return await insert_user(connection, new, secret=secret, now=now)


async def insert_user(connection: AsyncConnection, new: NewUser, *, secret: str | None, now: datetime) -> Row:
    """The row of a new user, of whose password ``secret`` is kept. Raises InvalidRequest, AlreadyExists."""
    _check_names(new)
    username, display_name = new.username.strip(), new.display_name.strip()
    if await user_by_name(connection, username) is not None:
        raise AlreadyExists("user already exists")
    await _check_display_name(connection, display_name, user_id=None)
    inserted = await connection.execute(
        insert(users)
        .values(
            username=username,
            display_name=display_name,
            admin=new.admin,
            active=new.active,
            remote=new.remote,
            password_hash=secret,
            modified_at=now,
            **_link(new.agent_user_group),
        )
        .on_conflict_do_nothing()
        .returning(users.c.id)
    )
    user_id = inserted.scalar_one_or_none()
    if user_id is None:
        raise AlreadyExists("user already exists")  # made by somebody whose transaction was not yet to be seen
    await personal_group(connection, user_id)
    await announce(connection, UserChanged(user_id=user_id, what="created", username=username))
    return await user_by_id(connection, user_id)


async def patch_user(db: Database, user_id: int, patch: PatchUser, *, now: datetime) -> Row:
    """The row after the change. Fields that are unset stay. Raises NotFound, InvalidRequest, AlreadyExists."""
    secret: str | UnsetType | None = UNSET
    if isinstance(patch.password, str):
        secret = await _kept(patch.password, is_hashed=patch.is_hashed)
    async with db.transaction() as connection:
        return await change_user(connection, user_id, patch, secret=secret, now=now)


async def change_user(
    connection: AsyncConnection,
    user_id: int,
    patch: PatchUser,
    *,
    secret: str | UnsetType | None = UNSET,
    by_provider: bool = False,
    now: datetime,
) -> Row:
    """The row after the change. Raises NotFound, InvalidRequest, AlreadyExists.

    secret       what is kept of a new password
    by_provider  whether it is the provider of identities who asks, and who alone may rename its users
    """
    before = await locked_user(connection, user_id)
    values = await _changes(connection, before, patch, by_provider=by_provider)
    if not isinstance(secret, UnsetType):
        if values.get("remote", before["remote"]):
            raise InvalidRequest("cannot set password for remote user")
        values["password_hash"] = secret
    if values:
        await connection.execute(update(users).where(users.c.id == user_id).values(modified_at=now, **values))
    await _end_sessions(connection, user_id, values, now)
    after = await user_by_id(connection, user_id)
    await announce(connection, UserChanged(user_id=user_id, what="changed", username=after["username"]))
    return after


async def _changes(connection: AsyncConnection, before: Row, patch: PatchUser, *, by_provider: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    admin = patch.admin if isinstance(patch.admin, bool) else before["admin"]
    for name in ("admin", "active"):
        if isinstance(wanted := getattr(patch, name), bool):
            values[name] = wanted
    if isinstance(patch.remote, bool) and patch.remote != before["remote"]:
        values["remote"] = patch.remote
        values["password_hash"] = passwords.NO_PASSWORD if patch.remote else None
    if isinstance(patch.username, str) and patch.username.strip() != before["username"]:
        username = patch.username.strip()
        if before["remote"] and not by_provider:
            raise InvalidRequest("cannot change username of a remote user")
        _check_username(username)
        _check_reserved(username, admin=admin, user_id=before["id"])
        if await user_by_name(connection, username) is not None:
            raise AlreadyExists("user already exists")
        values["username"] = username
    if isinstance(patch.display_name, str):
        display_name = patch.display_name.strip()
        await check_display_name(connection, display_name, user_id=before["id"], admin=admin)
        values["display_name"] = display_name
    if isinstance(patch.agent_user_group, AgentUserGroup):
        values |= _link(patch.agent_user_group)
    return values


async def _end_sessions(connection: AsyncConnection, user_id: int, values: dict[str, Any], now: datetime) -> None:
    """A new password ends logins; deactivation revokes other tokens for good. Running tasks go on, by their own."""
    mine = user_sessions.c.user_id == user_id
    if "password_hash" in values:
        await connection.execute(delete(user_sessions).where(mine, user_sessions.c.token_type == "LOGIN"))  # noqa: S105
    if values.get("active") is False:
        await revoke_tokens(connection, user_id, now=now)


async def revoke_tokens(connection: AsyncConnection, user_id: int, *, now: datetime) -> None:
    """For good, those that are no logins: who is deactivated does not get them back."""
    tokens = user_sessions.c.token_type != "LOGIN"  # noqa: S105
    live = user_sessions.c.revoked_at.is_(None)
    query = update(user_sessions).where(user_sessions.c.user_id == user_id, tokens, live)
    await connection.execute(query.values(revoked_at=now))


async def _kept(password: str, *, is_hashed: bool) -> str | None:
    return await passwords.hashed(password if is_hashed else passwords.salted(password))


def _check_names(new: NewUser) -> None:
    username, display_name = new.username.strip(), new.display_name.strip()
    _check_username(username)
    _check_reserved(username, admin=new.admin, user_id=None)
    if display_name:
        _check_printable(display_name)
        _check_reserved(display_name, admin=new.admin, user_id=None)


def _check_username(name: str) -> None:
    _check_printable(name)
    if len(name) < SHORTEST_NAME:
        raise InvalidRequest("Display name or username value has minimum length.")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"username: must not be longer than {LONGEST_NAME} characters")


def _check_printable(name: str) -> None:
    if not name.isascii() or not name.isprintable():
        raise InvalidRequest("Display name and username cannot contain non-ASCII characters.")


def _check_reserved(name: str, *, admin: bool, user_id: int | None) -> None:
    if name.lower() == "admin" and not admin:
        raise InvalidRequest("Non-admin user cannot be renamed 'admin'")
    if name.lower() == RESERVED and user_id != RESERVED_FOR:
        raise InvalidRequest("User cannot be renamed 'determined'")


async def check_display_name(
    connection: AsyncConnection, display_name: str, *, user_id: int | None, admin: bool
) -> None:
    """Raises InvalidRequest, or AlreadyExists when another user goes by it; an empty one is nobody's."""
    if display_name:
        _check_printable(display_name)
        _check_reserved(display_name, admin=admin, user_id=user_id)
        await _check_display_name(connection, display_name, user_id=user_id)


async def _check_display_name(connection: AsyncConnection, display_name: str, *, user_id: int | None) -> None:
    if not display_name:
        return
    name = display_name.lower()
    same = or_(func.lower(users.c.username) == name, func.lower(users.c.display_name) == name)
    taken = select(users.c.id).where(users.c.id != (user_id or 0), same)
    if (await connection.execute(taken.limit(1))).first() is not None:
        raise AlreadyExists(f"display name or username '{display_name}' is already in use")


def _link(group: AgentUserGroup | UnsetType) -> dict[str, Any]:
    """Columns of a link with a POSIX identity: all four or none; an empty group removes it."""
    if isinstance(group, UnsetType):
        return {}
    columns = posix_columns(group)
    are_given = {value is not None for value in columns.values()}
    if len(are_given) > 1:
        raise InvalidRequest("agentUid, agentGid, agentUser and agentGroup cannot be empty")
    return columns
