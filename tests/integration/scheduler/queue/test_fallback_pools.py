"""Jobs that may start in other pools when they have waited long enough in their own (resources.fallback_pools)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from libs.db.engine import Connection
from libs.db.jobs.pool_offers import PoolOffer, store_offers
from libs.db.tables.tasks import tasks
from libs.db.transactions import in_transaction
from libs.events import subjects
from services.scheduler.deletion.old_offers import close_offers
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.guests.wakes import Wakes
from services.scheduler.workqueue.resync import missed_requests
from services.scheduler.workqueue.work_queue import Request
from tests.builders import insert_generic_task
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, FakeLauncher, World, background

TWO_POOLS = ClusterConfig(resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="other")))
PREEMPTING = SchedulerConfig(type="priority", preemption=True, min_runtime=0)
LONG_S = 3600.0


async def test_it_starts_in_the_other_pool_as_that_pool_runs_tasks(world: World) -> None:
    variables = {"cpu": ["FROM=other"], "cuda": [], "rocm": []}
    changes = {"environment": {"environment_variables": variables}}
    async with _two_pools(world) as other:
        await world.launcher.offer(0)
        experiment = await _create(world, slots=2, pods=2, time_limit_s=77, changes=changes, priority=50)
        [started] = await other.running()
        [row] = await world.api.allocations(experiment)
        assert (row["pool"], row["num_pods"], row["time_limit_s"], row["wait_reason"]) == ("other", 2, 77, "")
        order = other.specs[started]
        assert order.spec is not None
        assert (order.pool, order.spec.num_pods, order.spec.environment.variables) == ("other", 2, ("FROM=other",))
        assert order.spec.trial is not None
        assert order.spec.trial.config["environment"]["environment_variables"] == variables
        assert order.spec.trial.config["resources"]["resource_pool"] == "default"
        assert world.launcher.specs == {}
        [usage] = await world.api.sql("SELECT pool FROM allocation_usage WHERE allocation_id = :a", a=started)
        assert usage == "other"
        await world.api.set_priority(experiment, 7)
        await eventually(lambda: _has(world, experiment, priority=7))
        assert (await world.api.allocations(experiment))[0]["preempted_at"] is None
        # It is where it may be, so that nothing of it was missed.
        await eventually(lambda: _is_at_rest(world, experiment))
        await world.api.sql("DELETE FROM pool_offers")
        assert not await _is_at_rest(world, experiment)


async def test_who_is_moved_waits_in_the_new_pool_though_it_could_fall_back_on_the_old_one(world: World) -> None:
    async with _two_pools(world) as other:
        await world.launcher.offer(0)
        await other.offer(0)
        experiment = await _create(world, after_s=LONG_S)
        await eventually(partial(_waits_in, world, experiment, "default"))
        for pool in ("other", "default"):
            await world.api.move_to_pool(experiment, pool, cluster=world.cluster)
            await eventually(partial(_waits_in, world, experiment, pool))
        await world.launcher.offer(8)
        await world.launcher.running()


async def test_it_waits_in_its_own_pool_for_as_long_as_it_says(world: World) -> None:
    async with _two_pools(world) as other:
        await world.launcher.offer(0)
        experiment = await _create(world, after_s=LONG_S)
        await eventually(lambda: _waits_for(world, experiment, WaitReason.TOO_LARGE))
        soon = await _create(world)
        await other.running()
        assert (await world.api.allocations(soon))[0]["pool"] == "other"
        assert await _waits_for(world, experiment, WaitReason.TOO_LARGE)
        await world.api.sql("UPDATE allocations SET requested_at = requested_at - interval '1 hour'")
        await other.running(2)
        assert (await world.api.allocations(experiment))[0]["pool"] == "other"


async def test_its_own_pool_is_the_first_choice_and_the_next_attempt_begins_there(world: World) -> None:
    async with _two_pools(world) as other:
        await world.launcher.offer(0)
        await _create(world)
        [first] = await other.running()
        await world.launcher.offer(8)
        await other.offer(0)
        await other.exit(first, 1)
        [second] = await world.launcher.running()
        assert second.partition(".")[0] == first.partition(".")[0]
        assert world.launcher.specs[second].pool == "default"
        assert list(other.specs) == [first]


async def test_a_job_that_both_pools_can_run_is_started_once(world: World) -> None:
    """Both are planned at the same time, again and again."""
    async with _two_pools(world) as other:
        await world.launcher.offer(0)
        await other.offer(0)
        experiments = [await _create(world) for _ in range(24)]
        await asyncio.gather(world.launcher.offer(12), other.offer(12))
        await eventually(lambda: len(world.launcher.specs) + len(other.specs) >= len(experiments))
        assert not world.launcher.specs.keys() & other.specs.keys()
        rows = [row for each in experiments for row in await world.api.allocations(each)]
        assert len(rows) == len(experiments)
        orders = {**world.launcher.specs, **other.specs}
        assert {row["allocation_id"]: row["pool"] for row in rows} == {name: o.pool for name, o in orders.items()}
        assert {name: len(one.specs) for name, one in (("default", world.launcher), ("other", other))} == {
            "default": 12,
            "other": 12,
        }


async def test_its_place_in_the_other_queue_is_that_of_its_submission(world: World) -> None:
    async with _two_pools(world) as other:
        await world.launcher.offer(0)
        await other.offer(0)
        older = await _create(world, slots=8)
        younger = await world.api.create(slots=8, pool="other")
        await eventually(lambda: _is_noted(world, older, younger))
        await other.offer(8)
        [started] = await other.running()
        assert [row["allocation_id"] for row in await world.api.allocations(older)] == [started]


async def test_what_others_leave_for_in_one_pool_starts_in_no_other(world: World) -> None:
    pools = (PoolConfig(pool_name="default"), PoolConfig(pool_name="other", scheduler=PREEMPTING))
    async with _two_pools(world, ClusterConfig(resource_pools=pools)) as other:
        await world.launcher.offer(0)
        other.obeys = False
        await world.api.create(resources=_wants(8, "other", priority=60))
        [victim] = await other.running()
        await world.api.sql("UPDATE allocations SET start_time = now() - interval '1 hour', is_ready = true")
        urgent = await _create(world, slots=8, priority=1)
        await eventually(lambda: _waits_for(world, urgent, WaitReason.PREEMPTING))
        await world.launcher.offer(8)
        witness = await world.api.create(slots=1)
        await world.launcher.running()
        assert [row["allocation_id"] for row in await world.api.allocations(witness)] == list(world.launcher.specs)
        await other.exit(victim)
        await other.running(2)
        assert [row["pool"] for row in await world.api.allocations(urgent)] == ["other"]


@pytest.mark.parametrize("is_silent", [False, True], ids=["a dead launcher", "a silent launcher"])
async def test_who_does_not_leave_in_time_is_waited_for_in_one_pool_no_longer(world: World, is_silent: bool) -> None:
    pools = (PoolConfig(pool_name="default"), PoolConfig(pool_name="other", scheduler=PREEMPTING))
    async with _two_pools(world, ClusterConfig(resource_pools=pools)) as other:
        await world.launcher.offer(0)
        other.obeys = False
        await world.api.create(resources=_wants(8, "other", priority=60))
        await other.running()
        await world.api.sql("UPDATE allocations SET start_time = now() - interval '1 hour', is_ready = true")
        urgent = await _create(world, slots=8, priority=1)
        await eventually(lambda: _waits_for(world, urgent, WaitReason.PREEMPTING))
        if is_silent:
            await world.bus.bucket(subjects.CAPACITY_BUCKET).delete(subjects.capacity_key("other"))
        await world.launcher.offer(8)
        await world.api.sql("UPDATE wait_notes SET since = since - interval '1 day'")
        asked = "preempted_at = now() - interval '1 hour', preempt_deadline = now() - interval '6 minutes'"
        killed = "killed_at = now() - interval '6 minutes', kill_reason = 'its time was up'"
        await world.api.sql(
            f"UPDATE allocations SET {asked}, {killed} WHERE pool = 'other' AND assigned_at IS NOT NULL"
        )
        [started] = await world.launcher.running()
        assert [row["allocation_id"] for row in await world.api.allocations(urgent)] == [started]


async def test_max_slots_of_a_job_holds_over_all_its_pools(world: World) -> None:
    async with _two_pools(world) as other:
        await world.launcher.offer(2)
        await other.offer(8)
        search = {"name": "random", "metric": "loss", "max_trials": 4, "max_concurrent_trials": 4}
        experiment = await _create(world, max_slots=3, searcher=search)
        await eventually(lambda: len(world.launcher.specs) + len(other.specs) >= 3)
        await eventually(lambda: _some_wait_for(world, experiment, WaitReason.JOB_MAX_SLOTS))
        assert len(world.launcher.specs) + len(other.specs) == 3


async def test_other_pools_are_told_once_of_what_waits_and_each_time_of_what_starts(world: World) -> None:
    """Pools that told each other again and again would never rest."""
    experiment = await _create(world, activate=False)
    [job] = await world.api.sql("SELECT job_id FROM experiments WHERE id = :e", e=experiment)
    now = datetime.now(UTC)
    row = {"allocation_id": "a.1", "job_id": job, "pool": "default", "requested_at": now, "has_several_queues": True}
    wakes = Wakes("default")

    async def after(row: dict[str, Any], *, started: tuple[str, ...] = (), nominated: tuple[str, ...] = ()) -> set[str]:
        async with world.db.read() as connection:
            return set(await wakes.after(connection, [row], started=started, nominated=nominated, now=now))

    early = {**row, "requested_at": now + timedelta(seconds=1)}
    assert [await after(early), await after(row), await after(row)] == [set(), {"other"}, set()]
    assert [await after(row, nominated=("a.1",)), await after(row, nominated=("a.1",))] == [{"other"}, set()]
    assert [await after(row, started=("a.1",)), await after(row, started=("a.1",))] == [{"other"}, {"other"}]
    assert await after({**row, "has_several_queues": False}, started=("a.1",)) == set()


async def test_offers_are_closed_with_their_job_and_go_with_it(world: World) -> None:
    experiment = await _create(world, activate=False)
    await close_offers(world.db)
    assert await world.api.sql("SELECT is_open FROM pool_offers ORDER BY rank") == [True, True]
    now = datetime.now(UTC)
    await world.api.sql("UPDATE experiments SET end_time = :now, state = 'CANCELED'", now=now)
    await world.api.sql("UPDATE tasks SET end_time = :now", now=now)
    await close_offers(world.db)
    assert await world.api.sql("SELECT is_open FROM pool_offers ORDER BY rank") == [False, False]
    await world.api.sql("UPDATE tasks SET job_id = NULL")
    await world.api.sql("UPDATE experiments SET job_id = 'another' WHERE id = :e", e=experiment)
    await close_offers(world.db)
    assert await world.api.sql("SELECT pool FROM pool_offers") == []


async def test_offers_stay_while_a_generic_task_may_go_on(world: World) -> None:
    async def store(connection: Connection) -> None:
        task = await insert_generic_task(connection)
        job = await connection.scalar(select(tasks.c.job_id).where(tasks.c.task_id == task))
        offers = [PoolOffer(pool="other", rank=1, after_s=0, num_pods=1, time_limit_s=None)]
        await store_offers(connection, str(job), offers, anew=False)

    await in_transaction(world.db, store)
    await world.api.sql("UPDATE tasks SET end_time = now()")
    for state, is_open in (("PAUSED", True), ("STOPPING_PAUSED", True), ("CANCELED", False)):
        await world.api.sql("UPDATE generic_tasks SET state = :state", state=state)
        await close_offers(world.db)
        assert await world.api.sql("SELECT is_open FROM pool_offers") == [is_open]


@asynccontextmanager
async def _two_pools(world: World, cluster: ClusterConfig = TWO_POOLS) -> AsyncIterator[FakeLauncher]:
    """Schedulers at work; the launcher of the other pool, which has 8 slots as well."""
    world.cluster = cluster
    other = FakeLauncher(world.bus, "other")
    await other.offer()
    async with world.scheduling(QUICK), background(other.run()):
        yield other


async def _create(
    world: World,
    *,
    slots: int = 1,
    pods: int = 1,
    after_s: float = 0.0,
    time_limit_s: int | None = None,
    changes: dict[str, Any] | None = None,
    max_slots: int | None = None,
    priority: int | None = None,
    **config: Any,
) -> int:
    """An experiment of the pool ``default`` that may start in the other one, too."""
    fallback = [{"pool": "other", "after": int(after_s)}]
    resources = {**_wants(slots, "default", priority=priority), "max_slots": max_slots, "fallback_pools": fallback}
    own = PoolOffer(pool="default", rank=0, after_s=0, num_pods=1, time_limit_s=None)
    offer = PoolOffer(
        pool="other", rank=1, after_s=after_s, num_pods=pods, time_limit_s=time_limit_s, changes=changes or {}
    )
    return await world.api.create(resources=resources, offers=(own, offer), **config)


def _wants(slots: int, pool: str, *, priority: int | None = None) -> dict[str, Any]:
    return {"slots_per_trial": slots, "resource_pool": pool, "priority": priority}


async def _has(world: World, experiment: int, **values: Any) -> bool:
    [row] = await world.api.allocations(experiment)
    return all(row[name] == value for name, value in values.items())


async def _waits_for(world: World, experiment: int, reason: WaitReason) -> bool:
    rows = await world.api.allocations(experiment)
    return bool(rows) and all(row["wait_reason"].startswith(reason) for row in rows)


async def _waits_in(world: World, experiment: int, pool: str) -> bool:
    rows = [row for row in await world.api.allocations(experiment) if row["state"] == "PENDING"]
    return [row["pool"] for row in rows] == [pool] and bool(rows[0]["wait_reason"])


async def _is_at_rest(world: World, experiment: int) -> bool:
    return Request("experiment", experiment) not in await missed_requests(world.db, SystemClock())


async def _some_wait_for(world: World, experiment: int, reason: WaitReason) -> bool:
    return any(row["wait_reason"].startswith(reason) for row in await world.api.allocations(experiment))


async def _is_noted(world: World, *experiments: int) -> bool:
    rows = [row for each in experiments for row in await world.api.allocations(each)]
    return len(rows) == len(experiments) and all(row["wait_reason"] for row in rows)
