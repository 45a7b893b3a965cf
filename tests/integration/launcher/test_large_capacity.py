"""Reports of the capacity that are larger than the bus takes: less is said, and whatever fits later is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from libs.bus import Bus
from libs.clock import SystemClock
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from libs.events.subjects import CAPACITY_BUCKET, capacity_key
from libs.run_until_first_exits import end
from libs.telemetry import value
from services.launcher.reports import Reports
from services.launcher.settings import LoopSettings
from tests.harness.waiting import eventually
from tests.integration.launcher.launcher_harness import POOL

TOO_MUCH = "x" * (9 << 20)
"""More than any server of the tests takes as one message."""


def capacity(slots: int, *, label: str = "", name: str = "n1") -> PoolCapacity:
    node = NodeCapacity(
        name=name,
        devices=tuple(Device(id=f"{number:03d}") for number in range(slots)),
        shape=0,
        labels={"rack": "r"},
        spare={"memory": 1},
        foreign={"cpu": 1},
    )
    return PoolCapacity(pool=POOL, backend="kubernetes", nodes=(node,), shapes=(ReportedShape(labels={"zone": label}),))


class Reporting:
    def __init__(self, bus: Bus, logged: list[MutableMapping[str, Any]]) -> None:
        self._bus = bus
        self._logged = logged
        self.now = capacity(0)
        settings = LoopSettings(retry_s=0.01, capacity_interval_s=1000)
        self._reports = Reports(pool=POOL, bus=bus, capacity=self._capacity, clock=SystemClock(), settings=settings)
        self.run = self._reports.publish_capacity

    async def _capacity(self) -> PoolCapacity:
        return self.now

    def become(self, now: PoolCapacity) -> None:
        self.now = now
        self._reports.capacity_changed()

    async def until_said(self, expected: PoolCapacity) -> None:
        async def is_said() -> bool:
            entry = await self._bus.bucket(CAPACITY_BUCKET).get(capacity_key(POOL))
            said = msgspec.json.decode(entry.value, type=PoolCapacity) if entry is not None else None
            return said is not None and said.revision > 0 and msgspec.structs.replace(said, revision=0) == expected

        await eventually(is_said)

    @property
    def said_of_size(self) -> list[str]:
        """What the log says of sizes, from the first on."""
        told = [each for each in self._logged if each["event"] in ("capacity.too_large", "capacity.whole_again")]
        return [f"{each['log_level']} {each.get('sent', 'whole')}" for each in told]


def slots_only(slots: int) -> PoolCapacity:
    whole = capacity(slots)
    (node,) = whole.nodes
    bare = NodeCapacity(name=node.name, devices=node.devices)
    return PoolCapacity(pool=POOL, backend="kubernetes", nodes=(bare,))


@pytest.fixture
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as found:
        yield found


@asynccontextmanager
async def reporting(bus: Bus, logged: list[MutableMapping[str, Any]], first: PoolCapacity) -> AsyncIterator[Reporting]:
    made = Reporting(bus, logged)
    made.now = first
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        await end(running)


def counted(sent: str) -> float:
    return value("resolute_launcher_capacity_too_large_total", sent=sent)


async def test_what_is_too_large_is_reported_without_shapes(bus: Bus, logged: list[MutableMapping[str, Any]]) -> None:
    before = counted("without_shapes")
    async with reporting(bus, logged, capacity(1, label=TOO_MUCH)) as pool:
        await pool.until_said(slots_only(1))
        pool.become(capacity(2, label=TOO_MUCH))
        await pool.until_said(slots_only(2))
        pool.become(capacity(3))
        await pool.until_said(capacity(3))
    assert pool.said_of_size == ["error without_shapes", "info whole"]
    assert counted("without_shapes") == before + 2


async def test_what_is_too_large_altogether_is_not_tried_again_until_it_is_another(
    bus: Bus, logged: list[MutableMapping[str, Any]]
) -> None:
    before = counted("nothing")
    async with reporting(bus, logged, capacity(1)) as pool:
        await pool.until_said(capacity(1))
        pool.become(capacity(2, name=TOO_MUCH))
        await eventually(lambda: pool.said_of_size == ["error nothing"])
        await asyncio.sleep(0.1)  # ten times as long as the pause before what failed is tried again
        assert counted("nothing") == before + 1
        pool.become(capacity(3))
        await pool.until_said(capacity(3))
    assert pool.said_of_size == ["error nothing", "info whole"]
