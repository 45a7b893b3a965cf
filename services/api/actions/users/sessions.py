"""Opens and closes the sessions of users."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.users import user_sessions, users
from libs.errors import FailedPrecondition, InvalidRequest, PermissionDenied, Unauthenticated
from libs.events.changes import UserChanged
from libs.tokens import digest, new_token
from services.api.access import passwords
from services.api.access.principal import Principal
from services.api.queries.users.users import Row, locked_user, user_by_id, user_by_name

SESSION_LIFETIME: Final = timedelta(days=7)


async def log_in(db: Database, *, username: str, salted_password: str, now: datetime) -> tuple[str, Row]:
    """A new session: its token, and the row of its user.

    Raises InvalidRequest, Unauthenticated, or PermissionDenied with the texts of docs/reference/platform.md 2.1.
    """
    if not username:
        raise InvalidRequest("missing argument: username")
    async with db.read() as connection:
        user = await user_by_name(connection, username)
    kept = passwords.NO_PASSWORD if user is None else user["password_hash"]
    if not await passwords.matches(salted_password, kept) or user is None or user["remote"]:
        raise Unauthenticated("invalid credentials")
    if not user["active"]:
        raise PermissionDenied("user is not active")
    async with db.transaction() as connection:
        # Checking takes its time; a password that was changed meanwhile opens nothing any more.
        now_kept = await locked_user(connection, user["id"])
        if now_kept["password_hash"] != user["password_hash"] or not now_kept["active"]:
            raise Unauthenticated("invalid credentials")
        return await open_session(connection, user["id"], now=now)


async def open_session(connection: AsyncConnection, user_id: int, *, now: datetime) -> tuple[str, Row]:
    """A new login of a user who has proven to be it: its token, and the row of the user."""
    token = new_token()
    await connection.execute(
        insert(user_sessions).values(
            user_id=user_id,
            token_hash=digest(token),
            token_type="LOGIN",  # noqa: S106
            created_at=now,
            expires_at=now + SESSION_LIFETIME,
        )
    )
    await connection.execute(update(users).where(users.c.id == user_id).values(last_auth_at=now))
    return token, await user_by_id(connection, user_id)


async def log_out(db: Database, principal: Principal) -> None:
    """End the login session of the caller; tokens made by ``det token create`` are not logged out.

    Raises FailedPrecondition for the tokens that a task has: they end with it, and nothing was ended.
    """
    if principal.is_narrow or principal.task is not None:
        raise FailedPrecondition("cannot manually logout of an allocation session")
    async with db.transaction() as connection:
        await connection.execute(
            delete(user_sessions).where(
                user_sessions.c.id == principal.session_id,
                user_sessions.c.token_type == "LOGIN",  # noqa: S105
            )
        )
        await announce(connection, UserChanged(user_id=principal.user_id, what="sessions", username=principal.username))
