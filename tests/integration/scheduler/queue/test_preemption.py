"""Preemption by the planner, from the plan to the next attempt of the trial that left (docs/reference/scheduling.md
5.3, 5.4; 16, B3, B12 and B15)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from libs.states.allocation import CLUSTER_PREEMPTS
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.returned import REMEMBERED, times_preempted
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, World


def cluster(scheduler: SchedulerConfig) -> ClusterConfig:
    return ClusterConfig(resource_pools=(PoolConfig(pool_name="default", scheduler=scheduler),))


PREEMPTS = cluster(SchedulerConfig(preemption=True, min_runtime=0))
SHARES = cluster(SchedulerConfig(type="fair_share", min_runtime=0))


async def test_a_better_priority_takes_the_place_of_a_trial_that_saves_its_state(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.scheduling() as w:
        low = await w.api.create(max_restarts=0, resources=wants(8, priority=50))
        [first] = await w.launcher.running()
        await w.api.ready(first)
        high = await w.api.create(max_restarts=0, resources=wants(8, priority=10))
        await eventually(lambda: _is_asked_to_leave(w, first))
        waiting = await eventually(lambda: _waits_for_who_leaves(w, high))
        assert (await w.api.allocation(first))["killed_at"] is None
        await w.api.ack(first)
        await w.launcher.exit(first)
        second = (await w.launcher.running(2))[1]
        assert second == waiting
        await w.launcher.exit(second)
        await w.api.ended(high, "COMPLETED")
        third = (await w.launcher.running(3))[2]
        [trial] = await w.api.trials(low)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("ACTIVE", 0, 2)
        await w.launcher.exit(third)
        await w.api.ended(low, "COMPLETED")
        await eventually(lambda: _is_forgotten(w))


async def test_what_cannot_be_asked_yet_is_killed_and_comes_back(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.scheduling() as w:
        low = await w.api.create(max_restarts=0, resources=wants(8, priority=50))
        [first] = await w.launcher.running()
        high = await w.api.create(resources=wants(8, priority=10))
        second = (await w.launcher.running(2))[1]
        assert (await w.api.allocation(first))["kill_reason"] == CLUSTER_PREEMPTS
        await w.launcher.exit(second)
        await w.api.ended(high, "COMPLETED")
        await w.launcher.running(3)
        [trial] = await w.api.trials(low)
        assert (trial["state"], trial["restarts"]) == ("ACTIVE", 0)


async def test_a_victim_that_waits_again_is_known_to_have_left(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.scheduling() as w:
        low = await w.api.create(resources=wants(8, priority=50))
        [first] = await w.launcher.running()
        await w.api.ready(first)
        await w.api.create(resources=wants(8, priority=10))
        await eventually(lambda: _is_asked_to_leave(w, first))
        assert await _times_preempted(w) == {}
        await w.api.ack(first)
        await w.launcher.exit(first)
        await w.launcher.running(2)
        await eventually(lambda: _has_come_back(w, low))
        [waits] = [row["allocation_id"] for row in await w.api.allocations(low) if row["assigned_at"] is None]
        assert await _times_preempted(w) == {waits: 1}
        assert await _times_preempted(w, later=REMEMBERED) == {}


async def test_no_more_leave_than_make_room(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.scheduling() as w:
        for count in range(4):
            await w.api.create(resources=wants(2, priority=50))
            await w.api.ready((await w.launcher.running(count + 1))[count])
        await w.api.create(resources=wants(4, priority=10))
        await eventually(lambda: _count_leaving(w, 2))
        # Another plan was made when this has started.
        await w.api.create(resources=wants(0))
        await w.launcher.running(5)
        assert await _count_leaving(w, 2)


async def test_the_scheduler_after_it_changes_neither_victim_nor_deadline(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.scheduling(QUICK) as w:
        for count in range(2):
            await w.api.create(resources=wants(4, priority=50))
            await w.api.ready((await w.launcher.running(count + 1))[count])
        await w.api.create(resources=wants(4, priority=10))
        await eventually(lambda: _count_leaving(w, 1))
        before = await _asked(w)
    async with world.scheduling(QUICK) as w:
        # The next one has planned the pool with what was there when this has started.
        await w.api.create(resources=wants(0))
        await w.launcher.running(3)
        assert await _asked(w) == before
        [asked] = before
        await w.api.ack(asked)
        await w.launcher.exit(asked)
        await w.launcher.running(4)


async def test_a_share_that_is_used_less_gets_its_part_back(world: World) -> None:
    world.cluster = SHARES
    async with world.scheduling() as w:
        greedy = await w.api.create(
            searcher={"name": "random", "metric": "loss", "max_trials": 8, "max_concurrent_trials": 8},
            resources=wants(1),
        )
        for allocation in await w.launcher.running(8):
            await w.api.ready(allocation)
        await w.api.create(resources=wants(4))
        await eventually(lambda: _count_leaving(w, 4))
        asked = [row["allocation_id"] for row in await w.api.allocations(greedy) if row["preempted_at"] is not None]
        for allocation in asked:
            await w.api.ack(allocation)
            await w.launcher.exit(allocation)
        await w.launcher.running(9)


async def test_max_slots_that_is_lowered_lets_trials_leave_though_nothing_waits(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        experiment = await w.api.create(
            searcher={"name": "random", "metric": "loss", "max_trials": 4, "max_concurrent_trials": 4},
            resources=wants(1) | {"max_slots": 4},
        )
        for allocation in await w.launcher.running(4):
            await w.api.ready(allocation)
        job = (await w.api.allocations(experiment))[0]["job_id"]
        await w.api.sql("UPDATE jobs SET max_slots = 2 WHERE job_id = :job RETURNING 1", job=job)
        await eventually(lambda: _count_leaving(w, 2))


def wants(slots: int, **more: object) -> dict[str, object]:
    return {"slots_per_trial": slots, "resource_pool": "default", **more}


async def _is_asked_to_leave(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["preempt_reason"] == CLUSTER_PREEMPTS


async def _waits_for_who_leaves(world: World, experiment: int) -> str:
    """Its allocation, once that is noted: a plan leaves rows that somebody holds to the next one."""
    [row] = await world.api.allocations(experiment)
    return str(row["allocation_id"]) if row["wait_reason"] == WaitReason.PREEMPTING else ""


async def _has_come_back(world: World, experiment: int) -> bool:
    return len(await world.api.allocations(experiment)) == 2


async def _times_preempted(world: World, *, later: timedelta = timedelta()) -> Mapping[str, int]:
    async with world.db.read() as connection:
        return await times_preempted(connection, "default", datetime.now(UTC) + later)


async def _count_leaving(world: World, count: int) -> bool:
    rows = await world.api.sql("SELECT 1 FROM allocations WHERE preempted_at IS NOT NULL AND released_at IS NULL")
    return len(rows) == count


async def _asked(world: World) -> dict[str, datetime]:
    """Who is asked to leave, until when."""
    rows = await world.api.allocations()
    return {row["allocation_id"]: row["preempt_deadline"] for row in rows if row["preempted_at"] is not None}


async def _is_forgotten(world: World) -> bool:
    return not await world.api.sql("SELECT 1 FROM queue_states")
