"""Makes, describes and revokes access tokens: sessions that come from no password
(docs/reference/platform.md 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, update

from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.users import user_sessions
from libs.errors import FailedPrecondition, NotFound
from libs.events.changes import UserChanged
from libs.tokens import digest, new_token
from services.api.queries.users.tokens import ACCESS
from services.api.queries.users.users import user_by_id
from services.api.wire.users.tokens import PatchTokenRequest


async def create_token(
    db: Database, *, user_id: int, lifespan: timedelta, description: str, now: datetime
) -> tuple[str, int]:
    """The token, which nobody can ever read again, and its id. Raises NotFound for an unknown user."""
    token = new_token()
    async with db.transaction() as connection:
        await user_by_id(connection, user_id)
        inserted = await connection.execute(
            insert(user_sessions)
            .values(
                user_id=user_id,
                token_hash=digest(token),
                token_type=ACCESS,
                created_at=now,
                expires_at=now + lifespan,
                description=description,
            )
            .returning(user_sessions.c.id)
        )
        return token, inserted.scalar_one()


async def change_token(db: Database, token_id: int, patch: PatchTokenRequest, *, now: datetime) -> Mapping[Any, Any]:
    """The row after the change. Raises NotFound, or FailedPrecondition for a token that is no longer good."""
    mine = (user_sessions.c.id == token_id) & (user_sessions.c.token_type == ACCESS)
    async with db.transaction() as connection:
        found = await connection.execute(select(user_sessions).where(mine).with_for_update())
        before = found.mappings().one_or_none()
        if before is None:
            raise NotFound("token", token_id)
        if before["revoked_at"] is not None or before["expires_at"] <= now:
            raise FailedPrecondition(f"unable to update inactive token with ID {token_id}")
        values: dict[str, Any] = {}
        if isinstance(patch.description, str):
            values["description"] = patch.description
        if patch.set_revoked:
            values["revoked_at"] = now
            await announce(connection, UserChanged(user_id=before["user_id"], what="sessions"))
        if values:
            await connection.execute(update(user_sessions).where(mine).values(**values))
        return {**before, **values}
