"""Trials that are moved to make room, from the plan to the next attempt on the nodes that were kept for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.moving.moves import load_moves
from tests.harness import eventually
from tests.integration.scheduler.queue.moved_trials import nodes_of, save_and_leave, started_again
from tests.integration.scheduler.world import QUICK, World


async def test_a_trial_is_moved_and_goes_on_elsewhere(world: World) -> None:
    async with _scattered(world, moves_per_hour=5) as (w, experiments):
        large = await w.api.create(resources=wants(4))
        moved = await eventually(lambda: _moved(w))
        [head] = await w.api.allocations(large)
        asked = await w.api.allocation(moved)
        assert (asked["preempt_reason"], asked["killed_at"]) == (f"moved to make room for {head['name']}", None)
        await eventually(lambda: _waits(w, large, WaitReason.PREEMPTING))
        await save_and_leave(w, moved)
        await w.launcher.running(4)
        [left] = nodes_of(asked)
        assert nodes_of(await w.api.allocation(head["allocation_id"])) == [left]
        again = await eventually(lambda: started_again(w, moved))
        assert nodes_of(await w.api.allocation(again)) == sorted({"node0", "node1"} - {left})
        trials = [trial for each in experiments for trial in await w.api.trials(each)]
        assert [(trial["state"], trial["restarts"]) for trial in trials] == [("ACTIVE", 0)] * 2
        assert sorted(trial["run_id"] for trial in trials) == [1, 2]


async def test_the_scheduler_after_it_keeps_the_places_and_counts_the_move(world: World) -> None:
    async with _scattered(world, moves_per_hour=1) as (w, experiments):
        large = await w.api.create(resources=wants(4))
        moved = await eventually(lambda: _moved(w))
        deadline = (await w.api.allocation(moved))["preempt_deadline"]
    async with _scheduling(world) as w:
        # It would fit where the trial is moved to.
        small = await w.api.create(resources=wants(2))
        await eventually(lambda: _waits(w, small, WaitReason.NO_ROOM))
        assert (await w.api.allocation(moved))["preempt_deadline"] == deadline
        await save_and_leave(w, moved)
        await w.launcher.running(4)
    async with _scheduling(world) as w:
        again = await eventually(lambda: started_again(w, moved))
        [runs] = await w.api.allocations(large)
        assert runs["assigned_at"] is not None
        await eventually(lambda: _waits(w, small, WaitReason.NO_ROOM))
        # What is left is scattered once more, and nothing may be moved any more.
        await w.launcher.exit(runs["allocation_id"])
        await w.launcher.running(5)
        await w.api.ready((await w.api.allocations(small))[0]["allocation_id"])
        await w.launcher.exit(again)
        larger = await w.api.create(resources=wants(4))
        await eventually(lambda: _waits(w, larger, WaitReason.NO_ROOM))
        assert await w.api.sql("SELECT allocation_id FROM consolidation_moves") == [moved]
        assert await w.api.sql("SELECT 1 FROM consolidation_moves WHERE settled_at IS NULL") == []
        assert len(experiments) == 2


async def test_places_of_a_trial_that_does_not_come_back_are_for_others_later(world: World) -> None:
    async with _scattered(world, moves_per_hour=5) as (w, experiments):
        await w.api.create(resources=wants(4))
        moved = await eventually(lambda: _moved(w))
        small = await w.api.create(resources=wants(2))
        await eventually(lambda: _waits(w, small, WaitReason.NO_ROOM))
        [its] = [each for each in experiments if moved in await _allocations(w, each)]
        await w.api.kill(its)
        await w.launcher.running(3)  # the large one
        await w.api.ended(its, "CANCELED")
        assert (await w.api.allocations(small))[0]["assigned_at"] is None
        await w.api.sql(
            "UPDATE allocations SET released_at = released_at - interval '1 hour'"
            " WHERE allocation_id = :it RETURNING 1",
            it=moved,
        )
        await w.api.create(resources=wants(0))
        await w.launcher.running(5)
        assert (await w.api.allocations(small))[0]["assigned_at"] is not None


async def test_places_are_held_for_a_request_that_came_while_the_rows_of_a_plan_were_read(world: World) -> None:
    async with _scattered(world, moves_per_hour=1) as (w, _):
        await w.api.create(resources=wants(4))
        moved = await eventually(lambda: _moved(w))
    # Nobody plans any more: it leaves, and its task asks for slots again.
    await world.api.sql("UPDATE allocations SET released_at = now() WHERE allocation_id = :it RETURNING 1", it=moved)
    await world.api.sql(
        "INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at)"
        " SELECT 'again', task_id, job_id, name, pool, slots, 'PENDING', now()"
        " FROM allocations WHERE allocation_id = :it RETURNING 1",
        it=moved,
    )
    now = SystemClock().now()
    async with world.db.transaction() as connection:
        unseen = await load_moves(connection, "default", per_hour=1, pending=(), now=now)
        seen = await load_moves(connection, "default", per_hour=1, pending=("again",), now=now)
    assert [row["allocation_id"] for row in unseen.returning] == [moved]
    assert (unseen.places, unseen.over) == ({}, [])
    assert (list(seen.places), list(seen.returning), seen.over) == (["again"], [], [])


def wants(slots: int) -> dict[str, object]:
    return {"slots_per_trial": slots, "resource_pool": "default"}


@asynccontextmanager
async def _scattered(world: World, *, moves_per_hour: int) -> AsyncIterator[tuple[World, list[int]]]:
    """Two nodes of four slots, with a trial of two slots on each."""
    scheduler = SchedulerConfig(min_runtime=0, moves_per_hour=moves_per_hour, fitting_policy="worst")
    world.cluster = ClusterConfig(resource_pools=(PoolConfig(pool_name="default", scheduler=scheduler),))
    world.launcher.node = ""
    async with _scheduling(world) as w:
        experiments = [await w.api.create(resources=wants(2)) for _ in range(2)]
        for allocation in await w.launcher.running(2):
            await w.api.ready(allocation)
        yield w, experiments


@asynccontextmanager
async def _scheduling(world: World) -> AsyncIterator[World]:
    async with world.scheduling(QUICK, slots=4, nodes=2) as w:
        yield w


async def _moved(world: World) -> str:
    """The allocation that is moved."""
    found = await world.api.sql("SELECT allocation_id FROM consolidation_moves")
    return str(found[0]) if found else ""


async def _waits(world: World, experiment: int, reason: WaitReason) -> bool:
    rows = await world.api.allocations(experiment)
    return bool(rows) and all(row["wait_reason"].startswith(reason) for row in rows)


async def _allocations(world: World, experiment: int) -> list[str]:
    return [row["allocation_id"] for row in await world.api.allocations(experiment)]
