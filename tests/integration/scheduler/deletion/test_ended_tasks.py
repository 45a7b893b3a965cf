"""Interactive tasks that ended long ago keep who ran what, and no keys or files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.scheduler.deletion.ended_tasks import empty_ended_tasks
from tests.builders import insert_interactive, insert_task
from tests.harness import eventually
from tests.integration.scheduler.world import World

NOW = datetime(2030, 1, 10, tzinfo=UTC)
LONG_AGO, LATELY = NOW - timedelta(hours=25), NOW - timedelta(hours=23)
FULL = (
    "SELECT t.task_id FROM tasks t LEFT JOIN interactive_tasks i ON i.task_id = t.task_id"
    " WHERE t.spec IS NOT NULL AND t.context_tgz IS NOT NULL AND coalesce(i.private_key, 'none') <> ''"
    " ORDER BY 1"
)


async def insert_ended(world: World, ident: str, *, end_time: datetime | None) -> None:
    task = {"task_id": ident, "end_time": end_time, "context_tgz": b"files"}
    async with world.db.transaction() as connection:
        await insert_interactive(connection, task_type="SHELL", task=task, private_key="key", public_key="pub")


async def test_what_ended_long_ago_is_emptied(world: World) -> None:
    await insert_ended(world, "old", end_time=LONG_AGO)
    await insert_ended(world, "recent", end_time=LATELY)
    await insert_ended(world, "running", end_time=None)
    async with world.db.transaction() as connection:
        # Its files may be wanted for another task, whenever it ended.
        columns = {"end_time": LONG_AGO, "context_tgz": b"files", "spec": {}}
        await insert_task(connection, task_id="generic", task_type="GENERIC", **columns)
    before = NOW - timedelta(hours=24)
    assert await empty_ended_tasks(world.db, before=before) == 1
    assert await world.api.sql(FULL) == ["generic", "recent", "running"]
    assert await world.api.sql("SELECT public_key FROM interactive_tasks WHERE private_key IS NULL") == ["pub"]
    assert await empty_ended_tasks(world.db, before=before) == 0


async def test_the_scheduler_sees_to_it(world: World) -> None:
    await insert_ended(world, "old", end_time=LONG_AGO - timedelta(days=3650))

    async def is_empty() -> bool:
        return await world.api.sql(FULL) == []

    async with world.scheduling():
        await eventually(is_empty)
