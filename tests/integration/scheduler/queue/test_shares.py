"""A pool that is divided among groups, and among users within them, by their weights, as plans are told of it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig, ShareKind
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import PoolSnapshot
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.pool_rows import load_pool
from tests.builders import insert_allocation, insert_job, insert_task
from tests.integration.scheduler.world import World

DAY = timedelta(days=1)
NODE = NodeCapacity(name="node0", devices=tuple(Device(id=f"{i:03}") for i in range(12)))
CAPACITY = PoolCapacity(pool="default", backend="process", nodes=(NODE,))


async def test_groups_divide_a_pool_and_their_users_what_a_group_has(world: World) -> None:
    ann, bob, cid = [await _new_user(world, name) for name in ("ann", "bob", "cid")]
    await _new_group(world, "lab", ann, bob)
    await _wants(world, ann, bob, cid)
    assert await _starts(world, "group", "user") == {ann: 3, bob: 3, cid: 6}
    assert await _starts(world, "user") == {ann: 4, bob: 4, cid: 4}


async def test_who_is_in_several_groups_counts_to_the_first_by_name(world: World) -> None:
    ann, bob = [await _new_user(world, name) for name in ("ann", "bob")]
    await _new_group(world, "team 10", ann)
    team2 = await _new_group(world, "team 2", ann, bob)
    await world.api.sql("INSERT INTO groups (name, user_id) VALUES ('a', :user) RETURNING id", user=ann)
    await _wants(world, ann, bob)
    snapshot = await _snapshot(world, "group")
    assert {one.share.partition("/")[0] for one in snapshot.pending} == {f"group {team2}"}


async def test_groups_and_users_have_what_they_weigh(world: World) -> None:
    ann, bob, cid = [await _new_user(world, name) for name in ("ann", "bob", "cid")]
    lab = await _new_group(world, "lab", ann, bob)
    await _wants(world, ann, bob, cid)
    await _set_weight(world, "group", lab, 3)
    await _set_weight(world, "user", ann, 2)
    assert await _starts(world, "group", "user") == {ann: 6, bob: 3, cid: 3}
    jobs = await _starts(world, "group")
    assert (jobs[cid], abs(jobs[ann] - jobs[bob])) == (3, 1), "what a user weighs is nothing to jobs in a group"
    assert await _starts(world, "user") == {ann: 6, bob: 3, cid: 3}
    await _set_weight(world, "workspace", 1, 5)
    assert (await _snapshot(world, "workspace")).weights["workspace 1"] == 5
    assert (await _snapshot(world, "user", policy="round_robin")).weights == {}, "others than fair share have none"


async def test_use_is_remembered_by_whoever_plans_next_and_half_of_it_for_a_half_life(world: World) -> None:
    ann, bob, cid = [await _new_user(world, name) for name in ("ann", "bob", "cid")]
    lab = await _new_group(world, "lab", ann, bob)
    await _wants(world, bob, cid)
    now = datetime.now(UTC)
    await _has_run(world, ann, now - 2 * DAY, now - DAY, slots=8)
    await _has_run(world, cid, now - timedelta(minutes=3), now - timedelta(minutes=1), slots=100)
    await _has_run(world, bob, now - DAY, now, slots=99, pool="other")
    await _has_run(world, bob, now - 5000 * DAY, now - 4999 * DAY, slots=99)
    running = await world.api.sql(
        "UPDATE allocations SET assigned_at = :now, start_time = :since WHERE allocation_id = (SELECT"
        " a.allocation_id FROM allocations a JOIN jobs j ON j.job_id = a.job_id WHERE j.owner_id = :owner LIMIT 1)"
        " RETURNING allocation_id",
        now=now,
        since=now - DAY,
        owner=cid,
    )
    minutes = 100 * (0.5 ** (1 / 1440) - 0.5 ** (3 / 1440))
    expected = {f"group {lab}": 2, f"group {lab}/user {ann}": 2, f"user {cid}": minutes + 0.5}
    expected[f"user {cid}/user {cid}"] = expected[f"user {cid}"]
    memory = _memory("group", "user")
    for plans in (memory, memory, _memory("group", "user")):  # the last one has just come, as after a kill
        found = await _snapshot(world, "group", "user", half_life="1d", memory=plans, now=now)
        assert found.past_use == pytest.approx(expected)
    starts = [one.allocation for one in plan(found).starts]
    first = next(one for one in found.pending if one.allocation == starts[0])
    assert first.share.startswith(f"user {cid}"), "what cid holds and has used is less than what the group has used"
    await world.api.sql(
        "UPDATE allocations SET released_at = :now, end_time = :now WHERE allocation_id = :it RETURNING 1",
        now=now,
        it=running[0],
    )
    for plans in (memory, _memory("group", "user")):
        later = await _snapshot(world, "group", "user", half_life="1d", memory=plans, now=now + DAY)
        assert later.past_use == pytest.approx({path: used / 2 for path, used in expected.items()})
    assert (await _snapshot(world, "group", "user")).past_use == {}, "without a half-life nothing is remembered"


async def _has_run(
    world: World, owner: int, start: datetime, end: datetime, *, slots: int, pool: str = "default"
) -> None:
    await world.api.sql(
        "INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, pool, slots,"
        " requested_at, start_time, end_time)"
        " VALUES (:id, :id, 'TRIAL', :owner, '', :pool, :slots, :start, :start, :end) RETURNING 1",
        id=f"{owner} until {end}",
        owner=owner,
        pool=pool,
        slots=slots,
        start=start,
        end=end,
    )


async def _set_weight(world: World, scope: str, subject: int, weight: float) -> None:
    await world.api.sql(
        "INSERT INTO share_weights (scope, subject_id, weight, set_by, set_at)"
        " VALUES (:scope, :subject, :weight, 1, now()) RETURNING 1",
        scope=scope,
        subject=subject,
        weight=weight,
    )


async def _new_user(world: World, name: str) -> int:
    [ident] = await world.api.sql("INSERT INTO users (username) VALUES (:name) RETURNING id", name=name)
    return int(ident)


async def _new_group(world: World, name: str, *members: int) -> int:
    [group] = await world.api.sql("INSERT INTO groups (name) VALUES (:name) RETURNING id", name=name)
    for user in members:
        await world.api.sql("INSERT INTO group_members VALUES (:group, :user) RETURNING 1", group=group, user=user)
    return int(group)


async def _wants(world: World, *users: int) -> None:
    """Each has a job of twelve tasks."""
    async with world.db.transaction() as connection:
        for user in users:
            job = await insert_job(connection, owner_id=user, workspace_id=1)
            for _ in range(12):
                task = await insert_task(connection, job_id=job, owner_id=user)
                await insert_allocation(connection, task_id=task, job_id=job)


async def _snapshot(
    world: World,
    *share_by: ShareKind,
    policy: Literal["fair_share", "round_robin"] = "fair_share",
    half_life: str | None = None,
    memory: PoolMemory | None = None,
    now: datetime | None = None,
) -> PoolSnapshot:
    cluster, pool = _configured(*share_by, policy=policy, half_life=half_life)
    async with world.db.transaction() as connection:
        loaded = await load_pool(
            connection,
            pool,
            cluster=cluster,
            capacity=CAPACITY,
            now=now or datetime.now(UTC),
            is_carried_out=False,
            memory=memory,
        )
    return loaded.snapshot


def _configured(
    *share_by: ShareKind,
    policy: Literal["fair_share", "round_robin"] = "fair_share",
    half_life: str | None = None,
) -> tuple[ClusterConfig, PoolConfig]:
    scheduler = SchedulerConfig(type=policy, share_by=share_by, half_life=half_life)
    pool = PoolConfig(pool_name="default", scheduler=scheduler)
    return ClusterConfig(resource_pools=(pool,)), pool


def _memory(*share_by: ShareKind) -> PoolMemory:
    cluster, pool = _configured(*share_by, half_life="1d")
    return PoolMemory(cluster=cluster, pool=pool)


async def _starts(world: World, *share_by: ShareKind) -> Counter[int]:
    """How many tasks of each user a plan starts."""
    snapshot = await _snapshot(world, *share_by)
    owners = await world.api.sql("SELECT owner_id FROM jobs ORDER BY job_id")
    jobs = await world.api.sql("SELECT job_id FROM jobs ORDER BY job_id")
    owner_of = dict(zip(jobs, owners, strict=True))
    job_of = {one.allocation: one.job for one in snapshot.pending}
    return Counter(owner_of[job_of[start.allocation]] for start in plan(snapshot).starts)
