"""Tokens of tasks: made when a task gets its slots, revoked when they are given back.

Only digests are stored, so a token exists in its order alone; whoever writes the order anew makes new ones beside them.
Source: docs/reference/harness-protocol.md 1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import insert, update

from libs.db.any_of import any_of
from libs.db.engine import Connection
from libs.db.tables.users import allocation_sessions, user_sessions
from libs.tokens import digest, new_token


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
    await connection.execute(
        insert(allocation_sessions),
        [
            {"allocation_id": holder.allocation_id, "owner_id": holder.owner_id, "token_hash": digest(tokens.session)}
            for holder, tokens in zip(holders, minted, strict=True)
        ],
    )
    await connection.execute(
        insert(user_sessions),
        [
            {
                "user_id": holder.owner_id,
                "token_hash": digest(tokens.user),
                "token_type": "TASK",
                "description": f"task {holder.allocation_id}",
                "allocation_id": holder.allocation_id,
            }
            for holder, tokens in zip(holders, minted, strict=True)
        ],
    )
    return minted


async def revoke_of_allocations(connection: Connection, ids: Sequence[str], *, now: datetime) -> None:
    for sessions in (allocation_sessions, user_sessions):
        mine = any_of(sessions.c.allocation_id, ids) & sessions.c.revoked_at.is_(None)
        await connection.execute(update(sessions).where(mine).values(revoked_at=now))
