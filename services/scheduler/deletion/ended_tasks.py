"""Empties interactive tasks that ended so long ago that they are not listed any more.

What their containers began with may be large, as an uploaded context is, and secret, as keys are; it is of no use to
anybody. Who ran what, how it ended and what it printed stays.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import text

from libs.db.engine import Database

_AT_ONCE: Final = 1000
"""Tasks that one transaction empties."""
_EMPTY: Final = text(f"""
    WITH old AS (
        SELECT t.task_id FROM tasks t JOIN interactive_tasks i ON i.task_id = t.task_id
        WHERE t.end_time < :before
          AND (t.spec IS NOT NULL OR t.context_tgz IS NOT NULL OR i.private_key IS NOT NULL)
        LIMIT {_AT_ONCE} FOR UPDATE OF t SKIP LOCKED
    ), keyless AS (
        UPDATE interactive_tasks i SET private_key = NULL FROM old WHERE i.task_id = old.task_id
    )
    UPDATE tasks t SET spec = NULL, context_tgz = NULL FROM old WHERE t.task_id = old.task_id
""")  # noqa: S608  # a number from this module


async def empty_ended_tasks(db: Database, *, before: datetime) -> int:
    """Empty those that ended before then; returns how many."""
    emptied = 0
    while True:
        async with db.transaction() as connection:
            found = (await connection.execute(_EMPTY, {"before": before})).rowcount
        emptied += found
        if found < _AT_ONCE:
            return emptied
