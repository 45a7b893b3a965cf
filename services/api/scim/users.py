"""Users as a provider of identities sees and changes them: those that it made, and remote ones that it takes over.

Accounts that have a password here are not its business, so it cannot lock out who administers the installation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.users import scim_users, users
from libs.errors import AlreadyExists, InvalidRequest
from libs.ids import new_uuid
from services.api.access import passwords
from services.api.actions.users.users import change_user, check_display_name, insert_user
from services.api.scim.errors import no_such
from services.api.scim.filters import Equals
from services.api.scim.models import ScimUser
from services.api.wire.users.users import NewUser, PatchUser

Row = Mapping[Any, Any]

SEARCHED: Final[Mapping[str, ColumnElement[Any]]] = {
    "userName": func.lower(users.c.username),
    "externalId": func.lower(scim_users.c.external_id),
    "id": scim_users.c.id,
}
"""Attribute -> what a filter compares; in lower case, as names differ by more than case (RFC 7643 4.1.1)."""
_BY_NAME: Final = {name.lower(): column for name, column in SEARCHED.items()}


def _all() -> Select[Any]:
    own = (
        scim_users.c.id.label("scim_id"),
        scim_users.c.external_id,
        scim_users.c.display_name.label("given_display_name"),
        scim_users.c.name,
        scim_users.c.emails,
        scim_users.c.created_at,
    )
    return select(users, *own).join(scim_users, scim_users.c.user_id == users.c.id)


def user_of(row: Row) -> ScimUser:
    """What the provider has said of it."""
    user = ScimUser.model_validate(
        {
            "userName": row["username"],
            "externalId": row["external_id"],
            "active": row["active"],
            "displayName": row["given_display_name"],
            "name": row["name"] or None,
            "emails": row["emails"],
        }
    )
    for other in [each for each in user.emails or () if each.primary][1:]:
        other.primary = False  # the provider may say it of several, after which no address could be changed
    return user


async def list_users(
    connection: AsyncConnection, wanted: Equals | None, *, offset: int, limit: int
) -> tuple[Sequence[Row], int]:
    """A page in the order of their making, and how many there are altogether."""
    query = _all()
    if wanted is not None:
        query = query.where(_BY_NAME[wanted.attribute] == wanted.value.lower())
    total = await connection.scalar(select(func.count()).select_from(query.subquery())) or 0
    page = query.order_by(users.c.id).offset(offset).limit(limit)
    return (await connection.execute(page)).mappings().all(), total


async def find_user(connection: AsyncConnection, ident: str, *, lock: bool = False) -> Row:
    """Raises NotFound."""
    query = _all().where(scim_users.c.id == ident)
    found = await connection.execute(query.with_for_update() if lock else query)
    row: Row | None = found.mappings().one_or_none()
    if row is None:
        raise no_such("User", ident)
    return row


async def create_user(db: Database, user: ScimUser, *, now: datetime) -> Row:
    """A new remote user, or one that was there and is the provider's from now on.

    Raises InvalidRequest, AlreadyExists for a name that is taken.
    """
    user_name = user.user_name or ""
    async with db.transaction() as connection:
        same = select(users, scim_users.c.id.label("scim_id")).join(
            scim_users, scim_users.c.user_id == users.c.id, isouter=True
        )
        same = same.where(func.lower(users.c.username) == user_name.lower())
        there: Row | None = (await connection.execute(same.with_for_update(of=users))).mappings().first()
        if there is None:
            new = NewUser(username=user_name, active=bool(user.active), remote=True)
            there = await insert_user(connection, new, secret=passwords.NO_PASSWORD, now=now)
        elif there["scim_id"] is not None:
            raise AlreadyExists(f"userName: there is a user '{there['username']}'")
        elif not there["remote"]:
            raise AlreadyExists(f"userName: '{there['username']}' is an account with a password here, and not remote")
        ident = new_uuid()
        await connection.execute(insert(scim_users).values(id=ident, user_id=there["id"], created_at=now))
        return await _save(connection, await find_user(connection, ident), user, now=now)


async def change(connection: AsyncConnection, before: Row, user: ScimUser, *, now: datetime) -> Row:
    """The row after the change of one that is locked. Raises InvalidRequest, AlreadyExists."""
    if user.model_dump() == user_of(before).model_dump():
        return before
    return await _save(connection, before, user, now=now)


async def _save(connection: AsyncConnection, before: Row, user: ScimUser, *, now: datetime) -> Row:
    own = scim_users.c.user_id == before["id"]
    user_name, display_name, whole = user.user_name or "", user.display_name or "", user.model_dump()
    await connection.execute(
        update(scim_users)
        .where(own)
        .values(
            external_id=user.external_id,
            display_name=display_name,
            name=whole.get("name", {}),
            emails=whole.get("emails", []),
        )
    )
    changes = PatchUser(active=bool(user.active))
    if user_name != before["username"]:
        await _check_free(connection, user_name, before["id"])
        changes.username = user_name
    if display_name != before["given_display_name"]:
        changes.display_name = await _usable(connection, display_name, before)
    if any(value is not UNSET for value in (changes.username, changes.display_name)) or user.active != before["active"]:
        await change_user(connection, before["id"], changes, by_provider=True, now=now)
    else:
        await connection.execute(update(users).where(users.c.id == before["id"]).values(modified_at=now))
    return await find_user(connection, before["scim_id"])


async def _check_free(connection: AsyncConnection, user_name: str, user_id: int) -> None:
    same = select(users.c.username).where(func.lower(users.c.username) == user_name.lower(), users.c.id != user_id)
    if (taken := await connection.scalar(same.limit(1))) is not None:
        raise AlreadyExists(f"userName: there is a user '{taken}'")


async def _usable(connection: AsyncConnection, display_name: str, row: Row) -> str:
    """The name if users may be called so here: nobody is kept from working because of a namesake."""
    try:
        await check_display_name(connection, display_name, admin=row["admin"], user_id=row["id"])
    except (InvalidRequest, AlreadyExists):
        return ""
    return display_name


async def remove_user(db: Database, ident: str, *, now: datetime) -> None:
    """The user is deactivated, and the provider's no more; what it has done stays. Raises NotFound."""
    async with db.transaction() as connection:
        row = await find_user(connection, ident, lock=True)
        await change_user(connection, row["id"], PatchUser(active=False), by_provider=True, now=now)
        await connection.execute(delete(scim_users).where(scim_users.c.id == ident))
