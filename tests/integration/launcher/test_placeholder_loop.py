"""The loop of a pool's placeholders: what failed is tried again soon, whether there is an order or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from libs.bus import Bus
from libs.errors import Unavailable
from libs.events.orders import PlaceholderOrder
from libs.events.subjects import ORDERS_BUCKET, placeholders_key
from libs.run_until_first_exits import end
from libs.waiting import wait_until_set
from services.launcher import placeholder_loop
from services.launcher.backends.protocol import Backend
from services.launcher.placeholder_loop import PlaceholderLoop
from tests.harness.waiting import eventually
from tests.integration.launcher.launcher_harness import POOL

ORDER = PlaceholderOrder(
    pool=POOL, allocation="1.a.1", pods=2, known_nodes=(), gives_up_at=datetime(2030, 1, 1, tzinfo=UTC)
)


class Cluster:
    """A backend whose cluster is away for the next so many attempts."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.held: list[PlaceholderOrder | None] = []

    async def hold_room(self, order: PlaceholderOrder | None) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the cluster is away")
        self.held.append(order)


@asynccontextmanager
async def looping(bus: Bus, cluster: Cluster) -> AsyncIterator[None]:
    loop = PlaceholderLoop(pool=POOL, bus=bus, backend=cast("Backend", cluster))
    running = asyncio.create_task(loop.run())
    try:
        yield
    finally:
        await end(running)


@pytest.fixture(autouse=True)
def _no_look_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is done again is done because it failed."""
    monkeypatch.setattr(placeholder_loop, "IDLE_LOOK_S", 3600.0)


async def test_without_an_order_what_failed_is_tried_again_soon(bus: Bus) -> None:
    cluster = Cluster(failures=2)
    async with looping(bus, cluster):
        await eventually(lambda: cluster.held == [None])


async def test_an_order_that_goes_while_the_cluster_is_away_leaves_nothing_behind(bus: Bus) -> None:
    cluster = Cluster(failures=0)
    orders = bus.bucket(ORDERS_BUCKET)
    await orders.put(placeholders_key(POOL), msgspec.json.encode(ORDER))
    async with looping(bus, cluster):
        await eventually(lambda: cluster.held[-1:] == [ORDER])
        cluster.failures = 2
        await orders.delete(placeholders_key(POOL))
        await eventually(lambda: cluster.held[-1:] == [None])


async def test_pauses_grow_and_are_never_longer_than_those_between_looks(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float | None] = []

    async def noted(event: asyncio.Event, *, timeout_s: float | None) -> bool:
        pauses.append(timeout_s)
        return await wait_until_set(event, timeout_s=timeout_s if timeout_s == 3600.0 else 0.0)

    monkeypatch.setattr(placeholder_loop, "wait_until_set", noted)
    cluster: Any = Cluster(failures=8)
    async with looping(bus, cluster):
        await eventually(lambda: cluster.held == [None])
        await eventually(lambda: pauses[-1:] == [3600.0])
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 3600.0]
