"""Logs in whom a login provider vouches for (docs/reference/platform.md 2.5)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.errors import AlreadyExists, FailedPrecondition, NotFound
from services.api.actions.users.provisioning import (
    insert_remote_user,
    lock_groups_for,
    set_membership,
    update_remote_user,
)
from services.api.actions.users.sessions import open_session
from services.api.oidc.identity import Identity
from services.api.queries.users.users import Row, locked_user, user_by_name, users_named_like


class NotProvisioned(NotFound):
    """Clients know this text."""

    def __init__(self) -> None:
        Exception.__init__(self, "user has not been provisioned")


async def log_in_remote(db: Database, identity: Identity, *, provisions: bool, now: datetime) -> tuple[str, Row]:
    """A new session: its token, and the row of its user, who is made as the identity says.

    provisions  whether a user who is not there is made
    Raises NotProvisioned, FailedPrecondition for an account that is local or inactive, InvalidRequest for a name that
    no user can have. Then nothing has changed.
    """
    try:
        return await _log_in(db, identity, provisions=provisions, now=now)
    except AlreadyExists:  # made by another login of the same user, at the same time
        return await _log_in(db, identity, provisions=provisions, now=now)


async def _log_in(db: Database, identity: Identity, *, provisions: bool, now: datetime) -> tuple[str, Row]:
    async with db.transaction() as connection:
        user = await _known_user(connection, identity.username)
        if user is None and not provisions:
            raise NotProvisioned
        _check(user)
        group_ids = None
        if identity.groups is not None:
            group_ids = await lock_groups_for(connection, user["id"] if user else None, identity.groups)
        if user is None:
            user = await insert_remote_user(
                connection, identity.username, display_name=identity.display_name or "", now=now
            )
        else:
            user = await locked_user(connection, user["id"])
            _check(user)
        await update_remote_user(connection, user, display_name=identity.display_name, agent=identity.agent, now=now)
        if group_ids is not None:
            await set_membership(connection, user["id"], group_ids, now=now)
        return await open_session(connection, user["id"], now=now)


async def _known_user(connection: AsyncConnection, username: str) -> Row | None:
    """The account of a name, whichever of its letters are capitals: providers and SCIM write them differently.

    Where accounts differ by case only, each is for the login that has its name exactly. Raises FailedPrecondition for
    another one.
    """
    if (user := await user_by_name(connection, username)) is not None:
        return user
    found = await users_named_like(connection, username)
    if len(found) > 1:
        raise FailedPrecondition(
            "several users have this name but for upper and lower case; an administrator can rename them"
        )
    return found[0] if found else None


def _check(user: Row | None) -> None:
    if user is None:
        return
    if not user["remote"]:
        raise FailedPrecondition("user exists but was not created with the --remote option")
    if not user["active"]:
        raise FailedPrecondition("user is not active")
