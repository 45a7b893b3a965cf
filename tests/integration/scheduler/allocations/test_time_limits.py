"""What reaches its time limit leaves at that instant, and is not run again (docs/scheduling.md)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from libs.cluster.config import ClusterConfig, PoolConfig
from services.scheduler.allocations.overdue import OverdueAllocations
from services.scheduler.allocations.reconciler import AllocationReconciler
from tests.builders import insert_interactive
from tests.harness import FakeClock, eventually
from tests.integration.scheduler.tasks.test_generic_tasks import ask, has_state, runs, start
from tests.integration.scheduler.world import QUICK, World

LIMIT_S = 3600


def wants(**more: Any) -> dict[str, Any]:
    return {"slots_per_trial": 1, "time_limit": LIMIT_S, **more}


async def use_up(w: World, allocation: str, *, seconds: float = LIMIT_S) -> None:
    """As if it had begun so much earlier."""
    await w.api.sql(
        "UPDATE allocations SET start_time = start_time - make_interval(secs => :s) WHERE allocation_id = :a",
        s=seconds,
        a=allocation,
    )


async def started(w: World, count: int = 1) -> str:
    """The last of ``count`` allocations, which has been seen to run and listens."""
    allocation = (await w.launcher.running(count))[count - 1]

    async def has_started() -> bool:
        return (await w.api.allocation(allocation))["start_time"] is not None

    await eventually(has_started)
    await w.api.ready(allocation)
    return allocation


async def asked_to_leave(w: World, allocation: str) -> None:
    async def is_asked() -> bool:
        return (await w.api.allocation(allocation))["preempted_at"] is not None

    await eventually(is_asked)


async def test_a_trial_saves_its_state_and_counts_as_completed(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=0, resources=wants())
        allocation = await started(w)
        row = await w.api.allocation(allocation)
        assert (row["time_limit_s"], row["ran_before_s"]) == (LIMIT_S, 0)
        await use_up(w, allocation)
        await asked_to_leave(w, allocation)
        assert (await w.api.allocation(allocation))["preempt_reason"] == "reached its time limit of 1h"
        await w.api.ack(allocation)
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        row = await w.api.allocation(allocation)
        assert row["exit_reason"].startswith("allocation preempted after 1h0m")
        assert row["exit_reason"].endswith(": reached its time limit of 1h")
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("COMPLETED", 0, 1)
        assert trial["error"] == "reached its time limit of 1h"
        shown = await w.api.experiment(experiment)
        assert shown is not None
        assert shown["error"] == f"trial {trial['id']} reached its time limit of 1h"


async def test_what_does_not_listen_is_killed_and_loses_no_restart(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=3, resources=wants())
        [allocation] = await w.launcher.running()
        await eventually(lambda: _has_started(w, allocation))
        await use_up(w, allocation)
        await w.api.ended(experiment, "COMPLETED")
        assert (await w.api.allocation(allocation))["kill_reason"] == "reached its time limit of 1h"
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("COMPLETED", 0, 1)


async def test_a_trial_that_comes_back_goes_on_with_what_is_left(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=3, resources=wants())
        first = await started(w)
        await use_up(w, first, seconds=LIMIT_S - 600)
        await w.launcher.exit(first, 1)
        second = await started(w, 2)
        row = await w.api.allocation(second)
        assert LIMIT_S - 600 <= row["ran_before_s"] < LIMIT_S - 300
        assert row["time_limit_s"] == LIMIT_S
        await w.api.pause(experiment)
        await asked_to_leave(w, second)
        await w.api.ack(second)
        await w.launcher.exit(second)
        await eventually(lambda: _is_settled(w, second))
        # Hours in which it is paused are not counted.
        await w.api.activate(experiment)
        third = await started(w, 3)
        row = await w.api.allocation(third)
        assert LIMIT_S - 600 <= row["ran_before_s"] < LIMIT_S - 300
        await use_up(w, third, seconds=600)
        await asked_to_leave(w, third)
        await w.api.ack(third)
        await w.launcher.exit(third)
        await w.api.ended(experiment, "COMPLETED")
        [trial] = await w.api.trials(experiment)
        assert (trial["restarts"], trial["run_id"]) == (1, 3)


async def test_what_runs_or_waits_and_is_moved_to_a_pool_with_a_limit_has_it_there(world: World) -> None:
    pools = (PoolConfig(pool_name="default"), PoolConfig(pool_name="other", default_time_limit=LIMIT_S))
    world.cluster = ClusterConfig(resource_pools=pools)
    async with world.scheduling() as w:
        runs = await w.api.create(slots=8)
        first = await started(w)
        waits = await w.api.create(slots=8)
        await eventually(lambda: _limits(w, ["default for ever", "default for ever"]))
        for experiment in (runs, waits):
            await w.api.move_to_pool(experiment, "other", cluster=world.cluster)
        await asked_to_leave(w, first)
        await w.api.ack(first)
        await w.launcher.exit(first)
        await eventually(lambda: _limits(w, [f"other {LIMIT_S}", f"other {LIMIT_S}"]))


async def _limits(w: World, expected: list[str]) -> bool:
    """Whether these are the pools and limits of all that runs or waits."""
    shown = "SELECT pool || ' ' || coalesce(time_limit_s::text, 'for ever') FROM allocations WHERE released_at IS NULL"
    found: list[str] = await w.api.sql(shown)
    return found == expected


async def test_a_search_goes_on_with_its_other_trials(world: World) -> None:
    async with world.scheduling() as w:
        searcher = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 1}
        experiment = await w.api.create(searcher=searcher, resources=wants())
        for number in range(1, 4):
            allocation = await started(w, number)
            if number == 2:
                await w.launcher.exit(allocation)
                continue
            await use_up(w, allocation)
            await asked_to_leave(w, allocation)
            await w.api.ack(allocation)
            await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        assert [trial["state"] for trial in await w.api.trials(experiment)] == ["COMPLETED"] * 3
        shown = await w.api.experiment(experiment)
        assert shown is not None
        assert shown["error"] is None


async def test_a_scheduler_that_takes_over_ends_it_all_the_same(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        await w.api.create(resources=wants())
        allocation = await started(w)
    await use_up(world, allocation)
    async with world.scheduling(QUICK) as w:
        await asked_to_leave(w, allocation)
        asked = await w.api.allocation(allocation)
    async with world.scheduling(QUICK) as w:
        await w.api.create(resources={"slots_per_trial": 0})
        await w.launcher.running(2)
        again = await w.api.allocation(allocation)
        assert (again["preempted_at"], again["preempt_deadline"]) == (asked["preempted_at"], asked["preempt_deadline"])


async def test_without_a_limit_nothing_ends(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        await w.api.create(resources={"slots_per_trial": 1})
        await w.api.create(resources=wants())
        endless = await started(w)
        limited = await started(w, 2)
        await use_up(w, endless, seconds=10 * LIMIT_S)
        await use_up(w, limited)
        await asked_to_leave(w, limited)
        row = await w.api.allocation(endless)
        assert (row["preempted_at"], row["killed_at"]) == (None, None)


async def test_a_generic_task_that_is_paused_goes_on_with_what_is_left_and_is_canceled(world: World) -> None:
    async with world.scheduling() as w:
        task = await start(w, allocation={"time_limit_s": LIMIT_S})
        await runs(w, f"{task}.1")
        await eventually(lambda: _has_started(w, f"{task}.1"))
        await use_up(w, f"{task}.1", seconds=600)
        await ask(w, "pause", task)
        await has_state(w, task, "PAUSED")
        await ask(w, "unpause", task)
        await runs(w, f"{task}.2")
        await eventually(lambda: _has_started(w, f"{task}.2"))
        await w.api.ready(f"{task}.2")
        second = await w.api.allocation(f"{task}.2")
        assert second["time_limit_s"] == LIMIT_S
        assert 600 <= second["ran_before_s"] < 900
        await use_up(w, f"{task}.2", seconds=LIMIT_S - 600)
        await asked_to_leave(w, f"{task}.2")
        await w.api.ack(f"{task}.2")
        await w.launcher.exit(f"{task}.2")
        await has_state(w, task, "CANCELED")
        assert [row["allocation_id"] for row in await w.api.allocations() if row["task_id"] == task] == [
            f"{task}.1",
            f"{task}.2",
        ]


async def test_the_instant_is_neither_before_nor_after(world: World) -> None:
    clock = FakeClock()
    allocations = AllocationReconciler(db=world.db, clock=clock, ended=lambda _: None)
    overdue = OverdueAllocations(db=world.db, clock=clock, allocations=allocations)
    running = {"state": "RUNNING", "assigned_at": clock.now(), "start_time": clock.now(), "time_limit_s": LIMIT_S}
    async with world.db.transaction() as connection:
        notebook = await insert_interactive(connection, task_type="NOTEBOOK", allocation=running)
    clock.advance(LIMIT_S - 10)
    assert await overdue.look() == []
    clock.advance(9)
    waiting = asyncio.ensure_future(overdue.look())
    clock.advance(1)
    assert await waiting == [notebook]
    row = await world.api.allocation(notebook)
    assert row["kill_reason"] == "reached its time limit of 1h"
    assert row["killed_at"] == row["start_time"] + timedelta(seconds=LIMIT_S)
    assert await overdue.look() == [], "once is enough"


async def _has_started(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["start_time"] is not None


async def _is_settled(w: World, allocation: str) -> bool:
    return bool((await w.api.allocation(allocation))["exit_processed"])
