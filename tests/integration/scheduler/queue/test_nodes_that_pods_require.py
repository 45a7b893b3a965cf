"""What is stored of a task decides on which of the reported nodes it starts, and is what its wait is explained with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from libs.bus import Bus
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.events.capacity import Device, NodeCapacity
from libs.events.node_shapes import ReportedShape
from tests.harness import eventually
from tests.integration.scheduler.world import KUBERNETES, World

A100: Final = ReportedShape(
    labels={"gpu": "a100"}, allocatable={"cpu": 8000, "memory": 1 << 34, "pods": 110, "nvidia.com/gpu": 8}
)
V100: Final = ReportedShape(
    labels={"gpu": "v100"}, allocatable={"cpu": 64_000, "memory": 1 << 36, "pods": 110, "nvidia.com/gpu": 8}
)

OBSERVED: Final = "node0"
"""Where the launcher of these tests sees all pods."""


@pytest.fixture
async def world(own_database_url: str, bus: Bus) -> AsyncIterator[World]:
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        yield World(db, bus, KUBERNETES)


async def test_a_trial_starts_where_its_node_selector_says(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w, v100=OBSERVED)
        await w.api.create(slots=8, environment=on("v100"))
        [first] = await w.launcher.running()
        assert await _nodes(w, first) == [OBSERVED]
        await w.api.create(slots=8, environment=on("v100"))
        await until_it_waits(
            w,
            "waiting for slots to become free: needs 8 free slots on one node; "
            "0 of 8 slots are free on the nodes that it may use",
        )
        await w.launcher.exit(first)
        second = (await w.launcher.running(2))[1]
        assert await _nodes(w, second) == [OBSERVED]


async def test_a_wait_says_what_no_node_has(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w)
        await w.api.create(slots=16, environment=on("h100"))
        await until_it_waits(
            w,
            "no node of the resource pool meets its requirements: "
            "needs a node with gpu=h100, which no node has; 2 nodes meet all other conditions",
        )
        await offer(
            w,
            NodeCapacity(name="h0", devices=_devices(), shape=2),
            NodeCapacity(name="h1", devices=_devices(), shape=2),
        )
        [started] = await w.launcher.running()
        assert sorted(await _nodes(w, started)) == ["h0", "h1"]


async def test_cores_that_running_tasks_request_are_not_given_twice(world: World) -> None:
    async with world.scheduling() as w:
        await offer(w, a100=OBSERVED)
        await w.api.create(slots=1, environment=on("a100", cpu="5"))
        [first] = await w.launcher.running()
        await w.api.create(slots=1, environment=on("a100", cpu="4"))
        await until_it_waits(
            w, "waiting for cores, memory or other resources to become free where slots are: needs 4.1 cores"
        )
        await w.launcher.exit(first)
        assert await _nodes(w, (await w.launcher.running(2))[1]) == [OBSERVED]


async def test_a_launcher_of_the_release_before_reports_slots_alone(world: World) -> None:
    async with world.scheduling() as w:
        await w.launcher.offer()
        await w.api.create(slots=8, environment=on("h100"))
        [started] = await w.launcher.running()
        assert await _nodes(w, started) == [OBSERVED]


async def offer(w: World, *more: NodeCapacity, a100: str = "a0", v100: str = "v0") -> None:
    h100 = ReportedShape(labels={"gpu": "h100"}, allocatable=A100.allocatable)
    await w.launcher.offer_nodes(
        NodeCapacity(name=a100, devices=_devices(), shape=0),
        NodeCapacity(name=v100, devices=_devices(), shape=1),
        *more,
        shapes=(A100, V100, h100),
        launcher_requests={"cpu": 100},
    )


def _devices() -> tuple[Device, ...]:
    return tuple(Device(id=f"{i:03}") for i in range(8))


def on(gpu: str, *, cpu: str | None = None) -> dict[str, Any]:
    requests = {} if cpu is None else {"resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeSelector": {"gpu": gpu}, "containers": [{"name": "determined-container", **requests}]}
    return {"pod_spec": {"spec": spec}}


async def _nodes(w: World, allocation: str) -> list[str]:
    return [place["node"] for place in (await w.api.allocation(allocation))["places"]]


async def until_it_waits(w: World, sentence: str) -> None:
    """With that one; what starts may have waited, too, before there was a capacity."""

    async def is_so() -> bool:
        return [row["wait_reason"] for row in await w.api.allocations() if row["assigned_at"] is None] == [sentence]

    await eventually(is_so, what=sentence)
