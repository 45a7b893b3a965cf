"""Gangs that are to be in one rack, from what is stored of them to the nodes that they get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import pytest

from libs.bus import Bus
from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig, TopologyConfig, TopologyDefault
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity
from libs.events.node_shapes import ReportedShape
from libs.events.orders import Order
from libs.events.requests.queue_checks import EmptyPoolRequest, QueueAnswers, QueueCheck
from tests.harness import eventually
from tests.integration.scheduler.queue.test_nodes_that_pods_require import OBSERVED, until_it_waits
from tests.integration.scheduler.queue.test_queue_checks import ask, knows_its_nodes, request_of
from tests.integration.scheduler.world import KUBERNETES, QUICK, World, background

LEVELS: Final = ("example.com/zone", "example.com/rack")
RACKS: Final = {OBSERVED: "a", "a1": "a", "b0": "b"}
SHAPE: Final = ReportedShape(labels={"example.com/zone": "z"}, allocatable={"pods": 110, "nvidia.com/gpu": 8})


def racked(**default: str) -> ClusterConfig:
    """A cluster whose first pool has zones and racks."""
    topology = TopologyConfig(levels=LEVELS, default=TopologyDefault(**default))
    pool = PoolConfig(pool_name="default", scheduler=SchedulerConfig(topology=topology))
    return msgspec.structs.replace(KUBERNETES, resource_pools=(pool, PoolConfig(pool_name="other")))


@pytest.fixture
async def world(request: pytest.FixtureRequest, own_database_url: str, bus: Bus) -> AsyncIterator[World]:
    """The parameter is what the pool says where configurations say nothing."""
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        yield World(db, bus, racked(**getattr(request, "param", {})))


async def test_a_gang_waits_for_room_in_one_rack(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w)
        await w.api.create(slots=8)
        [single] = await w.launcher.running()
        await eventually(lambda: _is_seen(w, single))
        waiting = await gang(w, 16, required=LEVELS[1])
        await until_it_waits(
            w,
            "waiting for room in one domain of the topology that it requires: "
            "needs 2 pods of 8 slots each in one rack; the rack with the most room has room for 1",
        )
        await w.launcher.exit(single)
        started = (await w.launcher.running(2))[1]
        assert await _places(w, waiting) == ["a1", OBSERVED]
        assert _bound_to(w, started) == ("a1", OBSERVED)
        assert _bound_to(w, single) == ()
        spec = w.launcher.specs[single].spec
        assert spec is not None
        assert list(spec.preferred_nodes) == await _places(w, int(single.partition(".")[0]))


async def test_what_no_rack_can_hold_says_so(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w)
        await gang(w, 24, required=LEVELS[1])
        await until_it_waits(
            w,
            "no domain of the topology that it requires is large enough, even when empty: "
            "needs 3 pods of 8 slots each in one rack; the largest rack has room for 2",
        )
        anywhere = await gang(w, 24, preferred=LEVELS[1])
        await w.launcher.running(1)
        assert await _places(w, anywhere) == sorted(RACKS)


@pytest.mark.parametrize("world", [{"required": LEVELS[1]}], indirect=True)
async def test_the_pool_decides_for_those_who_say_nothing(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w)
        await w.api.create(slots=24)
        await until_it_waits(
            w,
            "no domain of the topology that it requires is large enough, even when empty: "
            "needs 3 pods of 8 slots each in one rack; the largest rack has room for 2",
        )
        await gang(w, 24, required=LEVELS[0])
        await w.launcher.running(1)


async def test_a_question_is_answered_for_what_it_requires(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w)
        await knows_its_nodes(w)
        three = msgspec.structs.replace(request_of(24, topology={"required": LEVELS[1]}), num_pods=3)
        anywhere = msgspec.structs.replace(three, topology={"preferred": LEVELS[1]})
        answers = await ask(w, three, anywhere)
        assert [(one.starts_now, one.is_possible) for one in answers] == [(False, False), (True, True)]
        assert answers[0].reason_code == "no_such_domain"
        empty = EmptyPoolRequest(
            pool="default", task_type="TRIAL", slots=24, num_pods=3, topology={"required": LEVELS[1]}
        )
        question = msgspec.json.encode(QueueCheck(in_empty_pool=(empty,)))
        reply = await w.bus.request(subjects.CHECK_QUEUE, question, timeout_s=30)
        [answer] = msgspec.json.decode(reply, type=QueueAnswers).in_empty_pool
        assert (answer.is_possible, answer.reason) == (False, answers[0].reason)


async def test_where_no_nodes_are_seen_a_gang_is_bound_to_none(world: World) -> None:
    """Not even if it requires a rack; neither when it starts nor when its order has to be written again: the names are
    those of assumed nodes."""
    async with world.scheduling() as w:
        await w.launcher.offer(nodes=2)
        await gang(w, 16, required=LEVELS[1])
        [started] = await w.launcher.running()
        assert _bound_to(w, started) == ()
        bucket, key = w.bus.bucket(subjects.ORDERS_BUCKET), subjects.order_key("default", started)
        await w.api.sql("UPDATE allocations SET assigned_at = now() - interval '1 minute'")
        await bucket.delete(key)
        async with background(w.scheduler(QUICK).run()):
            again = msgspec.json.decode((await eventually(lambda: bucket.get(key))).value, type=Order)
        assert again.spec is not None
        assert again.spec.nodes == again.spec.preferred_nodes == ()


async def offer(w: World) -> None:
    devices = tuple(Device(id=f"{i:03}") for i in range(8))
    nodes = (
        NodeCapacity(name=name, devices=devices, shape=0, labels={"example.com/rack": rack})
        for name, rack in RACKS.items()
    )
    await w.launcher.offer_nodes(*nodes, shapes=(SHAPE,))


async def gang(w: World, slots: int, **topology: str) -> int:
    resources: dict[str, Any] = {"slots_per_trial": slots, "resource_pool": "default", "topology": topology}
    return await w.api.create(resources=resources)


async def _places(w: World, experiment: int) -> list[str]:
    [row] = await w.api.allocations(experiment)
    return sorted(place["node"] for place in row["places"])


async def _is_seen(w: World, allocation: str) -> bool:
    """Where the launcher of these tests sees all pods."""
    return bool((await w.api.allocation(allocation))["pods"])


def _bound_to(w: World, allocation: str) -> tuple[str, ...]:
    """The nodes that its pods may run on; () is all."""
    spec = w.launcher.specs[allocation].spec
    assert spec is not None
    return spec.nodes
