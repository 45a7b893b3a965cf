"""Use of interactive tasks, by which the scheduler knows those that nobody needs any more.

Source: docs/reference/tasks-and-cli.md 2.10 (idle timeout).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.interactive import interactive_tasks


async def touch(connection: AsyncConnection, task_id: str, now: datetime) -> None:
    """Note that an interactive task is in use; of other tasks there is nothing to note."""
    columns = interactive_tasks.c
    used = update(interactive_tasks).where(columns.task_id == task_id)
    # Clocks of several replicas differ: what is known never becomes older.
    await connection.execute(used.values(last_active_at=func.greatest(columns.last_active_at, now)))
