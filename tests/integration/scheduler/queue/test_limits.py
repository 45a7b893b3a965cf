"""Limits of what users, groups and workspaces may hold, as plans keep them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.slot_hours.period_use import PeriodUse
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HourLimit
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.queue.restricting.shared_limits import LOCK, load_shared_limits
from services.scheduler.settings import QueueSettings
from tests.harness import eventually
from tests.integration.scheduler.api import OWNER
from tests.integration.scheduler.world import QUICK, World

TWO_POOLS = ClusterConfig(resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="other")))
HOUR_LONG = {"slots_per_trial": 1, "resource_pool": "default", "time_limit": 3600}
FOUR_TRIALS = {"name": "random", "metric": "loss", "max_trials": 4, "max_concurrent_trials": 4}


async def set_limit(
    world: World,
    amount: float,
    *,
    scope: str = "user",
    subject: int = OWNER.user_id,
    pool: str = "",
    period: str = "",
    preempts: bool = False,
) -> None:
    await world.api.sql("DELETE FROM resource_limits WHERE scope = :scope RETURNING 1", scope=scope)
    await world.api.sql(
        "INSERT INTO resource_limits (scope, subject_id, pool, period, amount, preempts, set_by, set_at)"
        " VALUES (:scope, :subject, :pool, :period, :amount, :preempts, 1, now()) RETURNING 1",
        scope=scope,
        subject=subject,
        pool=pool,
        period=period,
        amount=amount,
        preempts=preempts,
    )


async def test_a_user_holds_no_more_than_allowed_and_goes_on_when_something_ends(world: World) -> None:
    await set_limit(world, 2)
    async with world.scheduling() as w:
        experiment = await w.api.create(searcher=FOUR_TRIALS)
        first, _ = await w.launcher.running(2)
        sentence = f"{WaitReason.SLOT_LIMIT}: user determined holds 2 of 2 slots"
        await eventually(lambda: _count_waiting(w, sentence, 2))
        await w.launcher.exit(first)
        await w.launcher.running(3)
        await w.api.kill(experiment)


async def test_everybody_without_a_limit_has_that_of_all(world: World) -> None:
    await set_limit(world, 1, scope="workspace", subject=0, pool="default")
    await set_limit(world, 3)
    async with world.scheduling() as w:
        await w.api.create(searcher=FOUR_TRIALS)
        await w.launcher.running(1)
        sentence = f"{WaitReason.SLOT_LIMIT}: workspace Uncategorized holds 1 of 1 slots of resource pool default"
        await eventually(lambda: _count_waiting(w, sentence, 3))


async def test_one_of_its_own_takes_the_place_of_that_of_all(world: World) -> None:
    await set_limit(world, 1, subject=0)
    await world.api.sql(
        "INSERT INTO resource_limits (scope, subject_id, pool, period, amount, preempts, set_by, set_at)"
        " VALUES ('user', :user, '', '', 3, false, 1, now()) RETURNING 1",
        user=OWNER.user_id,
    )
    async with world.scheduling() as w:
        await w.api.create(searcher=FOUR_TRIALS)
        await w.launcher.running(3)
        await eventually(lambda: _count_waiting(w, f"{WaitReason.SLOT_LIMIT}: user determined holds 3 of 3 slots", 1))


async def test_a_group_holds_what_its_members_hold(world: World) -> None:
    [group] = await world.api.sql("INSERT INTO groups (name) VALUES ('lab') RETURNING id")
    await world.api.sql("INSERT INTO group_members VALUES (:group, :user) RETURNING 1", group=group, user=OWNER.user_id)
    await set_limit(world, 3, scope="group", subject=group)
    async with world.scheduling() as w:
        await w.api.create(searcher=FOUR_TRIALS)
        await w.launcher.running(3)
        await eventually(lambda: _count_waiting(w, f"{WaitReason.SLOT_LIMIT}: group lab holds 3 of 3 slots", 1))


async def test_a_limit_that_is_lowered_and_enforced_lets_the_newest_leave(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        await w.api.create(searcher=FOUR_TRIALS)
        for allocation in await w.launcher.running(4):
            await w.api.ready(allocation)
        await set_limit(w, 3, preempts=True)
        await eventually(lambda: _count_leaving(w, 1))


async def test_two_pools_that_plan_at_the_same_time_keep_a_limit_of_both(world: World) -> None:
    world.cluster = TWO_POOLS
    await set_limit(world, 0)
    async with world.scheduling() as w:
        for pool in ("default", "other"):
            await w.api.create(searcher=FOUR_TRIALS, pool=pool)
        await eventually(lambda: _count_pending(w, 8))
    await set_limit(world, 5)
    queues = [_queue(world, pool) for pool in ("default", "other")]
    async with _locked_limits(world):
        plans = [asyncio.ensure_future(queue.plan_once()) for queue in queues]
        # Both have read what waits in their pools, and have the locks of these.
        await eventually(lambda: _count_plans_that_wait(world, 2))
    outcomes = await asyncio.gather(*plans)
    assert sum(outcome.started for outcome in outcomes) == 5
    [held] = await world.api.sql("SELECT sum(slots) FROM allocations WHERE assigned_at IS NOT NULL")
    assert held == 5


async def test_what_ends_in_another_pool_lets_those_start_that_wait_for_its_slots(world: World) -> None:
    world.cluster = TWO_POOLS
    await set_limit(world, 4)
    async with world.scheduling() as w:
        await w.api.create(searcher=FOUR_TRIALS)
        first = (await w.launcher.running(4))[0]
        queue = _queue(w, "other")
        await w.api.create(pool="other")
        await eventually(lambda: _count_pending(w, 1))
        waits = await queue.plan_once()
        assert (waits.started, queue.waits_for_shared_limits) == (0, True)
        await w.launcher.exit(first)
        await eventually(lambda: _is_released(w, first))
        assert (await queue.plan_once()).started == 1
        assert not queue.waits_for_shared_limits


def _queue(world: World, pool: str) -> PoolQueue:
    node = NodeCapacity(name="node0", devices=tuple(Device(id=f"{i:03}") for i in range(8)))
    capacity = PoolCapacity(pool=pool, backend="process", nodes=(node,), max_aux_containers_per_node=100)
    [config] = [each for each in world.cluster.resource_pools if each.pool_name == pool]
    return PoolQueue(
        db=world.db,
        clock=SystemClock(),
        cluster=world.cluster,
        pool=config,
        capacity=lambda _: capacity,
        ended=lambda _: None,
        settings=QueueSettings(),
    )


@asynccontextmanager
async def _locked_limits(world: World) -> AsyncIterator[None]:
    async with world.db.transaction() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        yield


async def _count_plans_that_wait(world: World, count: int) -> bool:
    found = await world.api.sql(
        "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = :key AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        key=LOCK,
    )
    return len(found) == count


async def _count_waiting(world: World, reason: str, count: int) -> bool:
    found = await world.api.sql(
        "SELECT 1 FROM allocations WHERE released_at IS NULL AND assigned_at IS NULL AND wait_reason = :reason",
        reason=reason,
    )
    return len(found) == count


async def _count_pending(world: World, count: int) -> bool:
    found = await world.api.sql("SELECT 1 FROM allocations WHERE released_at IS NULL AND assigned_at IS NULL")
    return len(found) == count


async def _count_leaving(world: World, count: int) -> bool:
    rows = await world.api.sql("SELECT 1 FROM allocations WHERE preempted_at IS NOT NULL AND released_at IS NULL")
    return len(rows) == count


async def _say_that_two_hours_are_used(world: World, count: int) -> bool:
    """The day may end after a plan and before this."""
    used = f"{WaitReason.HOUR_LIMIT}: user determined has used 2 of 2.5 slot-hours today; the next period begins "
    days = [datetime.now(UTC) + timedelta(days=ahead) for ahead in (0, 1)]
    counts = [await _count_waiting(world, f"{used}{day:%Y-%m-%d} 00:00 UTC", count) for day in days]
    return any(counts)


async def _is_released(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["released_at"] is not None


async def test_hours_are_charged_at_the_start_and_settled_at_the_end(world: World) -> None:
    await set_limit(world, 2.5, period="day")
    async with world.scheduling() as w:
        experiment = await w.api.create(searcher=FOUR_TRIALS, resources=HOUR_LONG)
        first, _ = await w.launcher.running(2)
        await eventually(lambda: _say_that_two_hours_are_used(w, 2))
        await w.launcher.exit(first)  # after much less than its hour
        await w.launcher.running(3)
        await w.api.kill(experiment)


async def test_what_has_ended_in_the_period_counts_whatever_pool_and_scheduler(world: World) -> None:
    world.cluster = TWO_POOLS
    await set_limit(world, 10, period="month")
    now = datetime.now(UTC)
    begin = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    first_minute = min(begin + timedelta(minutes=1), now)
    half_a_minute_ago = max(begin, now - timedelta(seconds=30))
    # Of the month before nothing counts, of what reaches into this one the part that is in it.
    await _has_run(world, "a", begin - timedelta(hours=5), begin - timedelta(hours=1))
    await _has_run(world, "b", begin - timedelta(hours=5), first_minute, slots=3)
    await _has_run(world, "c", half_a_minute_ago, now, pool="other")
    use = PeriodUse()
    for _ in range(2):  # the second time what has settled is remembered
        async with world.db.transaction() as connection:
            pending = [{"owner_id": OWNER.user_id, "workspace_id": 1, "slots": 1}]
            found = await load_shared_limits(connection, "default", pending, (), use=use, now=now, lock=True)
        [limit] = found.limits.values()
        assert isinstance(limit, HourLimit)
        expected = 3 * (first_minute - begin) + (now - half_a_minute_ago)
        assert limit.spent_s == pytest.approx(expected.total_seconds())
        assert limit.rest_s == 0


async def _has_run(
    world: World, ident: str, start: datetime, end: datetime, *, slots: int = 1, pool: str = "default"
) -> None:
    await world.api.sql(
        "INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, pool, slots,"
        " requested_at, start_time, end_time)"
        " VALUES (:id, :id, 'TRIAL', :owner, '', :pool, :slots, :start, :start, :end) RETURNING 1",
        id=ident,
        owner=OWNER.user_id,
        pool=pool,
        slots=slots,
        start=start,
        end=end,
    )
