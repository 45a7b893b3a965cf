"""Interactive tasks go on while nobody schedules, and what was asked meanwhile is done once somebody does."""

from __future__ import annotations

from typing import Any

import pytest

from libs.events.observations import AllocationObserved, ObservedPod
from libs.tasks.interactive.kinds import KINDS
from tests.builders import insert_interactive
from tests.harness import eventually
from tests.integration.scheduler.world import World


async def is_ended(world: World, allocation: str) -> bool:
    task = allocation.rpartition(".")[0]
    return await world.api.sql("SELECT end_time IS NOT NULL FROM tasks WHERE task_id = :t", t=task) == [True]


async def launch(world: World, task_type: str, **columns: Any) -> str:
    async with world.db.transaction() as connection:
        return await insert_interactive(connection, task_type=task_type, **columns)


@pytest.mark.parametrize("task_type", KINDS)
async def test_what_happened_while_nobody_scheduled_is_found(world: World, task_type: str) -> None:
    killed, ends, stays = [await launch(world, task_type) for _ in range(3)]
    async with world.scheduling() as w:
        await w.launcher.running(3)
        await eventually(lambda: _all_run(w))
    await world.api.request_kill(killed)
    by_itself = ObservedPod(name=f"{ends}-0", state="TERMINATED", exit_code=0)
    await world.launcher.publish(AllocationObserved(allocation=ends, pool="default", revision=9, pods=(by_itself,)))
    waits = await launch(world, task_type)
    asked = await launch(world, task_type)
    await world.api.request_kill(asked)
    async with world.scheduling() as w:
        for allocation in (killed, ends, asked):
            await eventually(lambda: is_ended(w, allocation))  # noqa: B023  # called before the next
        await eventually(lambda: waits in w.launcher.specs)
        rows = {allocation: await w.api.allocation(allocation) for allocation in (killed, ends, asked, stays)}
    assert rows[killed]["exit_reason"].startswith("allocation killed after")
    assert rows[ends]["exit_reason"].startswith("allocation stopped early after")
    assert (rows[asked]["exit_error"], rows[asked]["kill_reason"]) == (None, "user requested kill")
    assert (rows[stays]["state"], rows[stays]["killed_at"]) == ("RUNNING", None)
    tokens = await world.api.sql("SELECT count(*) FROM allocation_sessions WHERE allocation_id = :a", a=stays)
    assert tokens == [1], "its order was not written again"
    live = (
        "SELECT count(*) FROM allocation_sessions s JOIN allocations a ON a.allocation_id = s.allocation_id"
        " WHERE s.revoked_at IS NULL AND a.released_at IS NOT NULL"
    )
    assert await world.api.sql(live) == [0], "what has ended can do nothing any more"
    assert await world.api.sql(live.replace("allocation_sessions", "user_sessions")) == [0]


async def _all_run(world: World) -> bool:
    return await world.api.sql("SELECT count(*) FROM allocations WHERE state = 'RUNNING'") == [3]
