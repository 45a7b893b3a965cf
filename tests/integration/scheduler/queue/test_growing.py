"""A pool that grows: what its launcher is ordered to hold room for, and what comes of the nodes that come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from libs.bus import Bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.cluster.growth import GrowthConfig, NodeTemplate
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity
from libs.events.node_shapes import ReportedShape
from libs.events.orders import PlaceholderOrder
from services.scheduler.orders.orders import OrderRepair
from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.scheduler.world import KUBERNETES, QUICK, World, background

SHAPE = ReportedShape(
    labels={"gpu": "a100"}, allocatable={"cpu": 64_000, "memory": 1 << 36, "pods": 110, "nvidia.com/gpu": 8}
)
GROWTH = text("""
    INSERT INTO pool_growths (pool, allocation_id, pods, nodes, node_slots, gives_up_at, known_nodes, places, attempts,
                              placeholders)
    VALUES ('default', '1.a.1', 1, 1, 8, :at, '[]', '[]', 1, cast(:order AS jsonb))
""")
TEMPLATE = NodeTemplate(slots=8, labels={"gpu": "a100"})


def cluster(**growth: Any) -> ClusterConfig:
    pool = PoolConfig(pool_name="default", growth=GrowthConfig(node_template=TEMPLATE, **growth))
    return msgspec.structs.replace(KUBERNETES, resource_pools=(pool,))


@pytest.fixture
async def world(own_database_url: str, bus: Bus) -> AsyncIterator[World]:
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        yield World(db, bus, cluster())


async def test_an_empty_pool_grows_for_a_gang_and_starts_it_on_what_came(world: World) -> None:
    async with scheduling(world) as w:
        await w.api.create(slots=16, environment=on("a100"))
        order = await until_held(w)
        assert order is not None
        assert (order.pods, order.node_selector, order.known_nodes) == (2, {"gpu": "a100"}, ())
        assert order.requests["nvidia.com/gpu"] == 8
        await eventually(lambda: says(w, "asks the cluster for 2 more nodes with 8 slots each; gives up at"))
        await offer(w, "new1", "new2")
        [started] = await w.launcher.running()
        assert started == order.allocation
        assert await until_held(w, False) is None
        assert await rows(w) == []


async def test_what_is_there_is_held_and_the_rest_is_asked_for(world: World) -> None:
    async with scheduling(world) as w:
        await offer(w, "old1")
        await w.api.create(slots=16, environment=on("a100"))
        order = await until_held(w)
        assert order is not None
        assert (order.pods, order.known_nodes) == (1, ("old1",))
        # Nobody else gets the node that is held, or the one that comes.
        await w.api.create(slots=8, environment=on("a100"), resources={"priority": 99, "slots_per_trial": 8})
        await eventually(lambda: says(w, WaitReason.NO_ROOM))
        await offer(w, "old1", "new1")
        assert (await w.launcher.running())[0] == order.allocation


async def test_nodes_that_do_not_come_are_given_up_and_others_are_next(own_database_url: str, bus: Bus) -> None:
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        world = World(db, bus, cluster(deadline=1))
        async with scheduling(world) as w:
            await w.api.create(slots=16, environment=on("a100"))
            await eventually(lambda: held_for(w, pods=2))
            await w.api.create(slots=8, environment=on("a100"))
            await eventually(lambda: held_for(w, pods=1))
            await eventually(lambda: says(w, "the cluster has not added nodes in time, and is asked again after"))


async def test_growth_survives_the_scheduler_and_a_bus_that_forgot(world: World) -> None:
    async with scheduling(world) as w:
        await w.api.create(slots=8, environment=on("a100"))
        order = await until_held(w)
        [before] = await rows(w)
    await world.bus.bucket(subjects.ORDERS_BUCKET).delete(subjects.placeholders_key("default"))
    async with scheduling(world) as w:
        assert await until_held(w) == order
        assert await rows(w) == [before]


async def test_nothing_is_held_for_what_was_ended(world: World) -> None:
    async with scheduling(world) as w:
        experiment = await w.api.create(slots=8, environment=on("a100"))
        await until_held(w)
        await w.api.kill(experiment)
        assert await until_held(w, False) is None
        assert await rows(w) == []


async def test_a_pool_whose_nodes_nobody_sees_asks_for_none(world: World) -> None:
    async with scheduling(world) as w:
        await w.launcher.offer(slots=8)
        await w.api.create(slots=16, environment=on("a100"))
        await eventually(lambda: says(w, WaitReason.TOO_LARGE))
        assert await held(w) is None
        assert await rows(w) == []


async def test_an_order_without_growth_is_withdrawn(world: World) -> None:
    order = PlaceholderOrder(pool="default", allocation="1.gone.1", pods=1, gives_up_at=SystemClock().now())
    key = subjects.placeholders_key("default")
    async with scheduling(world) as w:
        await w.bus.bucket(subjects.ORDERS_BUCKET).put(key, msgspec.json.encode(order))
        assert await until_held(w, False) is None


async def test_an_order_that_was_written_while_it_seemed_stale_is_kept(world: World) -> None:
    """The rows say so by the time that the key is looked at again."""
    key = subjects.placeholders_key("default")
    order = PlaceholderOrder(pool="default", allocation="1.a.1", pods=1, gives_up_at=SystemClock().now())

    async def get(_key: str) -> bytes:
        async with world.db.transaction() as connection:
            document = msgspec.json.encode(order).decode()
            await connection.execute(GROWTH, {"order": document, "at": order.gives_up_at})
        return b"order"

    bus: Any = SimpleNamespace(bucket=lambda _name: SimpleNamespace(get=get))
    keys: Any = SimpleNamespace(present={key})
    repair = OrderRepair(
        db=world.db, bus=bus, clock=SystemClock(), cluster=cluster(), keys=keys, capacity=lambda _pool: None
    )
    assert await repair.repair() == 0
    assert await world.api.sql("SELECT subject FROM outbox") == []


@asynccontextmanager
async def scheduling(w: World) -> AsyncIterator[World]:
    """A launcher that has no node yet, and a scheduler at work."""
    await offer(w)
    async with background(relay_outbox(w.db, w.bus), w.launcher.run(), w.scheduler(QUICK).run()):
        yield w


async def offer(w: World, *names: str) -> None:
    devices = tuple(Device(id=f"{number:03}") for number in range(8))
    nodes = tuple(NodeCapacity(name=name, devices=devices, shape=0) for name in names)
    await w.launcher.offer_nodes(*nodes, shapes=(SHAPE,) if names else ())


def on(gpu: str) -> dict[str, Any]:
    return {"pod_spec": {"spec": {"nodeSelector": {"gpu": gpu}}}}


async def held(w: World) -> PlaceholderOrder | None:
    entry = await w.bus.bucket(subjects.ORDERS_BUCKET).get(subjects.placeholders_key("default"))
    return None if entry is None else msgspec.json.decode(entry.value, type=PlaceholderOrder)


async def until_held(w: World, is_held: bool = True) -> PlaceholderOrder | None:
    async def is_so() -> bool:
        return (await held(w) is not None) is is_held

    await eventually(is_so)
    return await held(w)


async def held_for(w: World, *, pods: int) -> bool:
    found = await held(w)
    return found is not None and found.pods == pods


async def says(w: World, text: str) -> bool:
    found = await w.api.sql("SELECT wait_reason FROM allocations WHERE assigned_at IS NULL")
    return any(text in reason for reason in found)


async def rows(w: World) -> list[Any]:
    return await w.api.sql("SELECT gives_up_at FROM pool_growths")
