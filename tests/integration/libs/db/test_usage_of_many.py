"""What each allocation uses is recorded by a trigger, at the price of a row, whatever statistics say of the tables."""

from __future__ import annotations

from typing import Final

import asyncpg

from libs.db.connecting.settings import asyncpg_url

TASKS: Final = 2_000
INSERT_TASKS: Final = (
    "INSERT INTO tasks (task_id, task_type, job_id, owner_id, start_time)"
    f" SELECT 'many' || n, 'NOTEBOOK', 'j', 2, now() FROM generate_series(1, {TASKS}) n"
)
INSERT_ALLOCATIONS: Final = (
    "INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at)"
    " SELECT task_id || '.1', task_id, 'j', 'x', 'default', 1, 'PENDING', now() FROM tasks"
)
READ: Final = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'tasks'"


async def test_usage_is_recorded_by_key_where_statistics_take_tasks_for_empty(database_url: str) -> None:
    url = asyncpg_url(database_url)
    filling, other = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        # Rows that are not committed yet do not count.
        async with filling.transaction():
            await filling.execute(INSERT_TASKS)
            await other.execute("VACUUM tasks")
        assert await other.fetchval("SELECT reltuples FROM pg_class WHERE oid = 'tasks'::regclass") == 0
        await filling.execute("SELECT pg_stat_force_next_flush()")
        before = await other.fetchval(READ)
        await filling.execute(INSERT_ALLOCATIONS)
        await filling.execute("SELECT pg_stat_force_next_flush()")
        assert await other.fetchval("SELECT count(*) FROM allocation_usage") == TASKS
        # By the trigger, by the foreign key, and by the statement itself.
        assert await other.fetchval(READ) - before <= 3 * TASKS
    finally:
        await filling.close()
        await other.close()
