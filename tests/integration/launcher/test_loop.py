"""The loop between orders and a backend: notifications say where to look, and what none tells of is found too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from libs.bus import Bus
from libs.clock import SystemClock
from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, PlaceholderOrder
from libs.events.subjects import ORDERS_BUCKET, order_key
from libs.run_until_first_exits import end, run_until_first_exits
from services.launcher import loop as order_loop
from services.launcher.cluster_admin import ClusterAdmin
from services.launcher.loop import OrderLoop
from services.launcher.reconcile import Existence
from services.launcher.reports import Reports
from services.launcher.settings import LoopSettings
from tests.harness.waiting import eventually
from tests.integration.launcher.launcher_harness import POOL, command


class Shelf:
    """A backend where nothing runs: it notes what it is asked for, and notifies of nothing unless told to."""

    def __init__(self) -> None:
        self.there: dict[str, Existence] = {}
        self.asked: list[tuple[str, str]] = []
        self.refuses = 0
        """So many of the next starts fail."""
        self.notifications: asyncio.Queue[str] = asyncio.Queue()

    @property
    def cluster_admin(self) -> ClusterAdmin:
        raise NotImplementedError

    async def existing(self) -> Mapping[str, Existence]:
        return dict(self.there)

    async def seek(self, order: Order) -> bool:
        return order.allocation in self.there

    async def start(self, order: Order) -> None:
        self.asked.append(("start", order.allocation))
        if self.refuses:
            self.refuses -= 1
            raise RuntimeError("not now")
        self.there[order.allocation] = Existence.LIVE

    async def stop(self, allocation: str, *, grace_s: float, ordered: bool) -> None:
        self.asked.append(("stop", allocation))

    async def remove(self, allocation: str) -> None:
        self.asked.append(("remove", allocation))
        self.there.pop(allocation, None)

    async def observe(self, allocation: str) -> AllocationObserved | None:
        return None

    async def hold_room(self, order: PlaceholderOrder | None) -> None:
        raise AssertionError("nobody orders placeholders here")

    async def capacity(self) -> PoolCapacity:
        return PoolCapacity(pool=POOL, backend="process")

    async def changes(self) -> AsyncGenerator[str, None]:
        while True:
            yield await self.notifications.get()


@asynccontextmanager
async def looping(bus: Bus, shelf: Shelf) -> AsyncIterator[None]:
    settings = LoopSettings(absence_grace_s=0, retry_s=0.05)
    reports = Reports(pool=POOL, bus=bus, capacity=shelf.capacity, clock=SystemClock(), settings=settings)
    loop = OrderLoop(pool=POOL, bus=bus, backend=shelf, reports=reports, clock=SystemClock(), settings=settings)
    running = asyncio.create_task(run_until_first_exits(orders=loop.run(), observations=reports.publish_observations()))
    try:
        yield
    finally:
        await end(running)


@pytest.fixture
async def shelf(bus: Bus) -> AsyncIterator[Shelf]:
    """One that a loop uses."""
    used = Shelf()
    async with looping(bus, used):
        yield used


async def order(bus: Bus, allocation: str) -> None:
    body = Order(allocation=allocation, pool=POOL, desired="run", spec=command("true"))
    await bus.bucket(ORDERS_BUCKET).put(order_key(POOL, allocation), msgspec.json.encode(body))


async def test_a_step_that_fails_is_taken_again_though_nothing_else_happens(shelf: Shelf, bus: Bus) -> None:
    shelf.refuses = 3
    await order(bus, "a.1")
    await eventually(lambda: "a.1" in shelf.there)
    assert shelf.asked == [("start", "a.1")] * 4


async def test_an_order_that_goes_takes_along_what_it_was_about_and_nothing_else(shelf: Shelf, bus: Bus) -> None:
    for allocation in ("a.1", "b.1"):
        await order(bus, allocation)
    await eventually(lambda: len(shelf.there) == 2)
    await bus.bucket(ORDERS_BUCKET).delete(order_key(POOL, "a.1"))
    await eventually(lambda: ("stop", "a.1") in shelf.asked)
    shelf.there["a.1"] = Existence.ENDED
    shelf.notifications.put_nowait("a.1")
    await eventually(lambda: "a.1" not in shelf.there)
    assert [what for what in shelf.asked if what[1] == "b.1"] == [("start", "b.1")]


async def test_what_ends_unannounced_is_found_some_time_later(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_loop, "LOOK_AT_ALL_S", 0.1)
    shelf = Shelf()
    async with looping(bus, shelf):
        await order(bus, "a.1")
        await eventually(lambda: "a.1" in shelf.there)
        shelf.there["left.1"] = Existence.ENDED
        await eventually(lambda: "left.1" not in shelf.there)
    assert shelf.asked == [("start", "a.1"), ("remove", "left.1")]


async def test_what_is_there_without_an_order_goes_when_the_launcher_begins(bus: Bus) -> None:
    shelf = Shelf()
    shelf.there["left.1"] = Existence.ENDED
    async with looping(bus, shelf):
        await eventually(lambda: shelf.asked == [("remove", "left.1")])
