"""Pools that share nodes: their plans follow one another, and none gives what another one has given."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from sqlalchemy import text

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.queue.restricting.shared_nodes import LOCK
from services.scheduler.settings import QueueSettings
from tests.harness import eventually
from tests.integration.scheduler.world import World

POOLS = ("left", "right")
CLUSTER = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes", cluster_name="here", max_slots_per_pod=8),
    resource_pools=tuple(PoolConfig(pool_name=pool) for pool in ("default", *POOLS)),
)
NODE = NodeCapacity(
    name="n1", registered_at="2030-01-01T00:00:00Z", devices=tuple(Device(id=f"{slot:03}") for slot in range(8))
)


async def test_two_pools_that_plan_at_the_same_time_give_no_slot_twice(world: World) -> None:
    await _one_that_waits_in_each(world, slots=8)
    queues = [_queue(world, pool) for pool in POOLS]
    async with world.db.transaction() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        plans = [asyncio.ensure_future(queue.plan_once()) for queue in queues]
        await eventually(lambda: _plans_that_wait(world, 2))
    assert sorted(outcome.started for outcome in await asyncio.gather(*plans)) == [0, 1]
    assert [(await queue.plan_once()).started for queue in queues] == [0, 0], "launchers have not seen a pod yet"


async def test_what_ended_in_one_pool_is_free_for_the_other(world: World) -> None:
    await _one_that_waits_in_each(world, slots=8)
    left, right = (_queue(world, pool) for pool in POOLS)
    assert (await left.plan_once()).started == 1
    assert (await right.plan_once()).started == 0
    await world.api.sql("UPDATE allocations SET released_at = now() WHERE pool = 'left' RETURNING 1")
    assert (await right.plan_once()).started == 1


async def test_what_was_taken_for_a_request_is_not_given_in_another_pool(world: World) -> None:
    await _one_that_waits_in_each(world, slots=4)
    nominated = [{"node": "n1", "slots": 6}]
    await world.api.sql(
        "INSERT INTO queue_states (pool, allocation_id, nominated)"
        " SELECT pool, allocation_id, CAST(:places AS jsonb) FROM allocations WHERE pool = 'left' RETURNING 1",
        places=msgspec.json.encode(nominated).decode(),
    )
    right = _queue(world, "right")
    assert (await right.plan_once()).started == 0, "two are left"
    await world.api.sql("DELETE FROM queue_states RETURNING 1")
    assert (await right.plan_once()).started == 1


async def test_a_node_of_the_same_name_in_another_cluster_is_another_node(world: World) -> None:
    await _one_that_waits_in_each(world, slots=8)
    elsewhere = msgspec.structs.replace(NODE, registered_at="2031-01-01T00:00:00Z")
    assert (await _queue(world, "left").plan_once()).started == 1
    assert (await _queue(world, "right", elsewhere).plan_once()).started == 1


async def _one_that_waits_in_each(world: World, *, slots: int) -> None:
    """No launcher of the pools is known to the scheduler, so that nothing starts by itself."""
    world.cluster = CLUSTER
    async with world.scheduling() as w:
        for pool in POOLS:
            await w.api.create(resources={"slots_per_trial": slots, "resource_pool": pool})
        await eventually(lambda: _pending(w, len(POOLS)))


def _queue(world: World, pool: str, node: NodeCapacity = NODE) -> PoolQueue:
    known = [PoolCapacity(pool=each, backend="kubernetes", nodes=(NODE,)) for each in POOLS if each != pool]
    mine = PoolCapacity(pool=pool, backend="kubernetes", nodes=(node,))
    [config] = [each for each in world.cluster.resource_pools if each.pool_name == pool]
    return PoolQueue(
        db=world.db,
        clock=SystemClock(),
        cluster=world.cluster,
        pool=config,
        capacity=lambda _: mine,
        ended=lambda _: None,
        settings=QueueSettings(),
        capacities=lambda: [mine, *known],
    )


async def _pending(world: World, count: int) -> bool:
    return len([row for row in await world.api.allocations() if row["assigned_at"] is None]) == count


async def _plans_that_wait(world: World, count: int) -> bool:
    found: list[Any] = await world.api.sql(
        "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = :key AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        key=LOCK,
    )
    return len(found) == count
