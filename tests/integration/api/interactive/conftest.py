"""Interactive tasks as their launch would have stored them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from libs.db.engine import Connection
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.tasks import allocations, jobs
from tests.builders import insert_interactive
from tests.integration.api.world import World

Task = Callable[..., str]
Columns = Callable[[str], dict[str, Any]]


@pytest.fixture
def task(world: World) -> Task:
    """Stores a task in the pool ``gpus``, as ``insert_interactive`` does; returns its id."""

    def insert(task_type: str, **columns: Any) -> str:
        job = {"pool": "gpus", "owner_id": 2, **columns.pop("job", {})}
        of_task = {"owner_id": 2, **columns.pop("task", {})}
        config = {"description": "d", "resources": {"slots": 1, "priority": 42}}
        row = {"config": config, **columns, "job": job, "task": of_task}
        allocation: str = world.in_database(lambda tx: insert_interactive(tx, task_type=task_type, **row))
        return allocation.rpartition(".")[0]

    return insert


@pytest.fixture
def columns_of(world: World) -> Columns:
    """The row of a task: its allocation, its job and what only interactive tasks have."""

    def read(task_id: str) -> dict[str, Any]:
        async def work(connection: Connection) -> dict[str, Any]:
            query = (
                select(
                    allocations,
                    jobs.c.priority.label("job_priority"),
                    jobs.c.weight,
                    interactive_tasks.c.config,
                    interactive_tasks.c.last_active_at,
                )
                .join(jobs, jobs.c.job_id == allocations.c.job_id)
                .join(interactive_tasks, interactive_tasks.c.task_id == allocations.c.task_id)
                .where(allocations.c.task_id == task_id)
            )
            return dict((await connection.execute(query)).mappings().one())

        found: dict[str, Any] = world.in_database(work)
        return found

    return read
