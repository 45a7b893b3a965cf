"""Trials that are moved in a pool whose cluster binds the pods itself: they are kept off the places of whom they were
moved for, whatever becomes of schedulers, trials and that one meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from sqlalchemy import text

from libs.bus import BusSettings
from libs.cluster.loading import load_cluster_config
from services.scheduler.plan.reasons import WaitReason
from tests.harness import ServiceProcess, eventually
from tests.integration.scheduler.queue.moved_trials import nodes_of, save_and_leave, started_again
from tests.integration.scheduler.world import QUICK, World, background

CLUSTER: Final[dict[str, Any]] = {
    "resource_manager": {"type": "kubernetes", "cluster_name": "here", "max_slots_per_pod": 4},
    "resource_pools": [
        {
            "pool_name": "default",
            "scheduler": {"type": "priority", "min_runtime": 0, "moves_per_hour": 5, "fitting_policy": "worst"},
        }
    ],
}
_PLAN_WAITS_FOR_A_ROW: Final = """
    SELECT 1 FROM pg_locks pool JOIN pg_locks row USING (pid)
    WHERE pool.locktype = 'advisory' AND pool.classid = 24144 AND pool.granted AND NOT row.granted
"""
"""Some plan holds the lock of its pool."""


async def test_a_gang_gets_the_places_of_those_moved_for_it_though_each_step_is_another_schedulers(
    world: World, own_database_url: str, bus_settings: BusSettings, tmp_path: Path
) -> None:
    process = _scheduler(own_database_url, bus_settings, tmp_path)
    world.launcher.node = ""
    await world.launcher.offer(4, nodes=4)
    with process:
        async with background(world.launcher.run()):
            experiments = [await world.api.create(slots=2) for _ in range(4)]
            running = await world.launcher.running(4)
            for allocation in running[:2]:  # the others may not be moved
                await world.api.ready(allocation)
            large = await world.api.create(slots=8)
            await eventually(lambda: _all_moved(world, 2))
            first, second = running[:2]
            asked = {each: await world.api.allocation(each) for each in (first, second)}
            freed = sorted(node for each in asked.values() for node in nodes_of(each))

            await asyncio.to_thread(process.kill)
            await save_and_leave(world, first)
            await asyncio.to_thread(process.start)
            again = await eventually(lambda: started_again(world, first))
            # Its pod could be bound to what it has left itself, which the gang waits for.
            await eventually(lambda: again in world.launcher.specs)
            assert _kept_off(world, again) == freed
            assert not set(nodes_of(await world.api.allocation(again))) & set(freed)
            [head] = await world.api.allocations(large)
            assert (head["assigned_at"], head["wait_reason"]) == (None, WaitReason.PREEMPTING)

            await asyncio.to_thread(process.kill)
            await save_and_leave(world, second)
            assert (await world.api.allocation(second))["preempt_deadline"] == asked[second]["preempt_deadline"]
            await asyncio.to_thread(process.start)
            await eventually(lambda: _has_started(world, large))
            [head] = await world.api.allocations(large)
            assert nodes_of(head) == freed
            other = await eventually(lambda: started_again(world, second))
            assert not set(nodes_of(await world.api.allocation(other))) & set(freed)

            await asyncio.to_thread(process.kill)
            await asyncio.to_thread(process.start)
            await world.api.create(slots=1)  # there is something to plan
            await eventually(lambda: _is_settled(world))
            assert len(await world.api.sql("SELECT 1 FROM consolidation_moves")) == 2
            trials = [trial for each in experiments for trial in await world.api.trials(each)]
            assert {(trial["state"], trial["restarts"]) for trial in trials} == {("ACTIVE", 0)}
            assert sorted(trial["run_id"] for trial in trials) == [1, 1, 2, 2]
        assert await asyncio.to_thread(process.stop) == 0


async def test_a_move_that_nobody_needs_any_more_keeps_its_trial_off_nothing(world: World, tmp_path: Path) -> None:
    async with _scattered(world, tmp_path) as (w, moves):
        large = await w.api.create(slots=4)
        await eventually(lambda: _all_moved(w, 1))
        await w.api.kill(large)
        await w.api.ended(large, "CANCELED")
        # What was free beside the trial is not kept for the large one any more, and its new place still is for it.
        small = await w.api.create(slots=2)
        await eventually(lambda: _has_started(w, small))
        assert nodes_of((await w.api.allocations(small))[0]) == nodes_of(await w.api.allocation(moves))
        await save_and_leave(w, moves)
        again = await eventually(lambda: started_again(w, moves))
        await eventually(lambda: again in w.launcher.specs)
        assert _kept_off(w, again) == []
        assert nodes_of(await w.api.allocation(again)) != nodes_of(await w.api.allocation(moves))
        await w.api.create(slots=1)
        await eventually(lambda: _is_settled(w))


async def test_a_trial_that_is_done_when_it_is_to_move_leaves_for_good(world: World, tmp_path: Path) -> None:
    async with _scattered(world, tmp_path) as (w, moves):
        large = await w.api.create(slots=4)
        await eventually(lambda: _all_moved(w, 1))
        await w.launcher.exit(moves)  # without a word about saving its state
        await eventually(lambda: _has_started(w, large))
        [head] = await w.api.allocations(large)
        assert nodes_of(head) == nodes_of(await w.api.allocation(moves))
        await eventually(lambda: _is_completed(w, moves))
        assert await started_again(w, moves) == ""


async def test_a_trial_that_ends_while_a_plan_is_carried_out_is_not_moved(world: World, tmp_path: Path) -> None:
    async with _scattered(world, tmp_path) as (w, moves):
        async with w.db.transaction() as connection:
            ended = "UPDATE allocations SET state = 'TERMINATED', released_at = now() WHERE allocation_id = :it"
            await connection.execute(text(ended), {"it": moves})
            large = await w.api.create(slots=4)
            await eventually(lambda: w.api.sql(_PLAN_WAITS_FOR_A_ROW))
        await eventually(lambda: _has_started(w, large))
        [head] = await w.api.allocations(large)
        row = await w.api.allocation(moves)
        assert (nodes_of(head), row["preempted_at"]) == (nodes_of(row), None)
        assert await w.api.sql("SELECT 1 FROM consolidation_moves") == []


@asynccontextmanager
async def _scattered(world: World, folder: Path) -> AsyncIterator[tuple[World, str]]:
    """Two nodes of four slots with a trial of two on each, and the allocation of the one that may be moved."""
    world.cluster = load_cluster_config(_cluster_file(folder))
    world.launcher.node = ""
    async with world.scheduling(QUICK, slots=4, nodes=2) as w:
        for _ in range(2):
            await w.api.create(slots=2)
        first, _ = await w.launcher.running(2)
        await w.api.ready(first)
        yield w, first


def _scheduler(database_url: str, bus: BusSettings, folder: Path) -> ServiceProcess:
    settings = {
        "database": {"url": database_url.replace("+asyncpg", ""), "pool_size": 6},
        "bus": {"url": bus.url},
        "cluster_config": str(_cluster_file(folder)),
        "engine": {"resync_s": 0.5, "log_wait_s": 0},
        "queue": {"resync_s": 0.5, "plan_interval_s": 0.02},
        "lease": {"retry_s": 0.1},
    }
    path = folder / "scheduler.yaml"
    path.write_text(yaml.safe_dump(settings))
    return ServiceProcess("services.scheduler.main", "--settings", str(path), log_path=folder / "log")


def _cluster_file(folder: Path) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(CLUSTER))
    return path


async def _all_moved(world: World, count: int) -> bool:
    return len(await world.api.sql("SELECT 1 FROM consolidation_moves")) == count


async def _has_started(world: World, experiment: int) -> bool:
    return any(row["assigned_at"] is not None for row in await world.api.allocations(experiment))


async def _is_settled(world: World) -> bool:
    return not await world.api.sql("SELECT 1 FROM consolidation_moves WHERE settled_at IS NULL")


async def _is_completed(world: World, allocation: str) -> bool:
    return await world.api.state(int(allocation.partition(".")[0])) == "COMPLETED"


def _kept_off(world: World, allocation: str) -> list[str]:
    """Nodes to which its pods are not bound."""
    spec = world.launcher.specs[allocation].spec
    assert spec is not None
    return list(spec.blocked_nodes)
