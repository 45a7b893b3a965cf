"""Deletes sessions that nobody can use any more, or their tables would grow with every task.

Not at once: the log intake takes the last lines of a task by a session that is revoked. Access tokens stay, as they are
listed when they have expired or were revoked, too (docs/reference/platform.md 3).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import text

from libs.db.engine import Database

_AT_ONCE: Final = 10_000
"""Rows that one transaction deletes."""
_OF_USERS: Final = text(f"""
    DELETE FROM user_sessions WHERE id IN (
        SELECT id FROM user_sessions
        WHERE token_type <> 'ACCESS' AND (revoked_at < :before OR expires_at < :before)
        LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED
    )
""")  # noqa: S608  # a number from this module
_OF_ALLOCATIONS: Final = text(f"""
    DELETE FROM allocation_sessions WHERE id IN (
        SELECT id FROM allocation_sessions WHERE revoked_at < :before LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED
    )
""")  # noqa: S608  # a number from this module
_OF_CLIENTS: Final = text(f"""
    DELETE FROM oauth_tokens WHERE token_hash IN (
        SELECT token_hash FROM oauth_tokens WHERE expires_at < :before LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED
    )
""")  # noqa: S608  # a number from this module


async def forget_sessions(db: Database, *, before: datetime) -> int:
    """Delete the sessions that ended before then; returns how many."""
    forgotten = 0
    for statement in (_OF_USERS, _OF_ALLOCATIONS, _OF_CLIENTS):
        while True:
            async with db.transaction() as connection:
                found = (await connection.execute(statement, {"before": before})).rowcount
            forgotten += found
            if found < _AT_ONCE:
                break
    return forgotten
