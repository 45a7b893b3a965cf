"""Closes what was offered to jobs that have ended, and forgets that of jobs of which nothing is left.

A generic task that is paused has an end, and may go on all the same.
What is closed is kept for experiments that go on later (libs/db/tables/tasks.py, ``pool_offers``).
"""

from __future__ import annotations

from typing import Final

from libs.db.engine import Database
from libs.db.prepared.statements import PreparedStatement
from libs.states.generic_task import TERMINAL

_CLOSE: Final = PreparedStatement("""
    UPDATE pool_offers o SET is_open = false
    WHERE is_open
      AND NOT EXISTS (SELECT FROM tasks t WHERE t.job_id = o.job_id AND t.end_time IS NULL)
      AND NOT EXISTS (SELECT FROM experiments e WHERE e.job_id = o.job_id AND e.end_time IS NULL)
      AND NOT EXISTS (
          SELECT FROM tasks t JOIN generic_tasks g USING (task_id)
          WHERE t.job_id = o.job_id AND g.state <> ALL(:terminal::text[])
      )
""")
_FORGET: Final = PreparedStatement("""
    DELETE FROM pool_offers o
    WHERE NOT is_open
      AND NOT EXISTS (SELECT FROM tasks t WHERE t.job_id = o.job_id)
      AND NOT EXISTS (SELECT FROM experiments e WHERE e.job_id = o.job_id)
""")


async def close_offers(db: Database) -> None:
    async with db.transaction() as connection:
        await _CLOSE.rows(connection, terminal=sorted(TERMINAL))
        await _FORGET.rows(connection)
