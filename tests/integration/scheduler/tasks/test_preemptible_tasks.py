"""Tasks of all kinds that may be preempted because their owners say so (docs/reference/scheduling.md 16, B3)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from libs.states.allocation import CLUSTER_PREEMPTS
from libs.tasks.interactive.kinds import KINDS
from tests.builders import insert_generic_task, insert_interactive
from tests.harness import eventually
from tests.integration.scheduler.world import World

PREEMPTS = ClusterConfig(
    resource_pools=(PoolConfig(pool_name="default", scheduler=SchedulerConfig(preemption=True, min_runtime=0)),)
)
WHOLE_POOL = 8
OPTED_IN = {"slots": WHOLE_POOL, "preemptible": True, "preemption_timeout_s": 0}


async def launch(world: World, task_type: str, **allocation: Any) -> str:
    async with world.db.transaction() as connection:
        ident = await insert_interactive(
            connection, task_type=task_type, job={"priority": 50}, allocation={**OPTED_IN, **allocation}
        )
        await connection.execute(text("UPDATE interactive_tasks SET last_active_at = now() - interval '9 days'"))
        return ident


async def urgent(world: World) -> int:
    resources = {"slots_per_trial": WHOLE_POOL, "resource_pool": "default", "priority": 10}
    return await world.api.create(resources=resources)


@pytest.mark.parametrize("task_type", KINDS)
async def test_what_opted_in_is_stopped_with_grace_and_starts_again(world: World, task_type: str) -> None:
    world.cluster = PREEMPTS
    first = await launch(world, task_type)
    async with world.scheduling() as w:
        assert await w.launcher.running() == [first]
        await w.api.ready(first)
        experiment = await urgent(w)
        trial = (await w.launcher.running(2))[1]
        gone = await w.api.allocation(first)
        assert (gone["kill_reason"], gone["exit_kind"]) == (CLUSTER_PREEMPTS, "")
        [waits] = await eventually(lambda: _waiting(w))
        assert waits == f"{first.removesuffix('.1')}.2"
        assert await _end_of(w, first) is None
        await w.launcher.exit(trial)
        await w.api.ended(experiment, "COMPLETED")
        again = (await w.launcher.running(3))[2]
        assert again == waits
        # Otherwise it would be ended as idle since the times when it ran before.
        assert await w.api.sql("SELECT last_active_at FROM interactive_tasks") == [None]
        await w.launcher.exit(again)
        await eventually(lambda: _has_ended(w, first))
    assert len(world.launcher.specs) == 3


async def test_who_did_not_opt_in_stays(world: World) -> None:
    world.cluster = PREEMPTS
    first = await launch(world, "COMMAND", preemptible=False)
    async with world.scheduling() as w:
        assert await w.launcher.running() == [first]
        await urgent(w)
        await eventually(lambda: _waits(w))
        assert (await w.api.allocation(first))["killed_at"] is None


async def test_a_task_that_fails_while_it_may_be_preempted_is_over(world: World) -> None:
    first = await launch(world, "COMMAND")
    async with world.scheduling() as w:
        await w.launcher.running()
        await w.launcher.exit(first, code=3)
        await eventually(lambda: _has_ended(w, first))
    assert list(world.launcher.specs) == [first]


async def test_what_its_user_kills_while_it_makes_room_does_not_come_back(world: World) -> None:
    now = datetime.now(UTC)
    over = {"assigned_at": now, "start_time": now, "end_time": now, "released_at": now, "killed_at": now}
    first = await launch(world, "COMMAND", state="TERMINATED", kill_reason=CLUSTER_PREEMPTS, **over)
    await world.api.request_kill(first)
    async with world.scheduling() as w:
        await eventually(lambda: _has_ended(w, first))
        assert await _waiting(w) == []


async def test_a_generic_task_that_opted_in_makes_room_in_its_first_run(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.db.transaction() as connection:
        task = await insert_generic_task(connection, allocation={"slots": WHOLE_POOL, "preemptible": True})
    async with world.scheduling() as w:
        await w.launcher.running()
        await urgent(w)
        trial = (await w.launcher.running(2))[1]
        await w.launcher.exit(trial)
        assert (await w.launcher.running(3))[2] == f"{task}.2"


async def _waiting(world: World) -> list[str]:
    return await world.api.sql("SELECT allocation_id FROM allocations WHERE assigned_at IS NULL")


async def _waits(world: World) -> bool:
    return await world.api.sql("SELECT 1 FROM allocations WHERE wait_reason <> ''") == [1]


async def _end_of(world: World, allocation: str) -> datetime | None:
    task = allocation.removesuffix(".1")
    found: list[datetime | None] = await world.api.sql("SELECT end_time FROM tasks WHERE task_id = :t", t=task)
    return found[0]


async def _has_ended(world: World, allocation: str) -> bool:
    return await _end_of(world, allocation) is not None
