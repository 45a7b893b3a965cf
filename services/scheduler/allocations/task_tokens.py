"""Tokens of tasks: made when a task gets its slots, revoked when they are given back.

Only digests are stored, so a token exists in its order alone; whoever writes the order anew makes new ones beside them.
Source: docs/reference/harness-protocol.md 1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from sqlalchemy import update

from libs.db.any_of import any_of
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.db.tables.users import allocation_sessions, user_sessions
from libs.tokens import digest, new_token

_ADD: Final = PreparedStatement("""
    WITH minted AS (
        SELECT * FROM unnest(:allocations::text[], :owners::bigint[], :sessions::bytea[], :users::bytea[],
                             :descriptions::text[]) AS minted (allocation_id, owner_id, session, token, description)
    ), of_allocations AS (
        INSERT INTO allocation_sessions (allocation_id, owner_id, token_hash)
        SELECT allocation_id, owner_id, session FROM minted
    )
    INSERT INTO user_sessions (user_id, token_hash, token_type, description, allocation_id)
    SELECT owner_id, token, 'TASK', description, allocation_id FROM minted
""")


class TaskTokens(Struct, frozen=True):
    session: str
    user: str


class Holder(Struct, frozen=True):
    allocation_id: str
    owner_id: int


async def mint(connection: Connection, holders: Sequence[Holder]) -> list[TaskTokens]:
    """Tokens for allocations that are about to start, in the same order."""
    minted = [TaskTokens(new_token(), new_token()) for _ in holders]
    if not minted:
        return []
    await _ADD.rows(
        connection,
        allocations=[holder.allocation_id for holder in holders],
        owners=[holder.owner_id for holder in holders],
        sessions=[digest(tokens.session) for tokens in minted],
        users=[digest(tokens.user) for tokens in minted],
        descriptions=[f"task {holder.allocation_id}" for holder in holders],
    )
    return minted


async def revoke_of_allocations(connection: Connection, ids: Sequence[str], *, now: datetime) -> None:
    for sessions in (allocation_sessions, user_sessions):
        mine = any_of(sessions.c.allocation_id, ids) & sessions.c.revoked_at.is_(None)
        await connection.execute(update(sessions).where(mine).values(revoked_at=now))
