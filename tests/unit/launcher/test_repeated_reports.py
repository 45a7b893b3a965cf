"""What is said once more: how allocations stand, and not what was true of nodes at the moment of the first report."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from libs.clock import SystemClock
from libs.events.capacity import PoolCapacity
from libs.events.observation_requests import ReportAgainRequest
from libs.events.observations import AllocationObserved
from libs.run_until_first_exits import end
from services.launcher.reports import Reports
from services.launcher.settings import LoopSettings
from tests.harness.waiting import eventually

ENDED = AllocationObserved(allocation="1.a.1", pool="default", revision=0, gone=True, closed_nodes=("n1",))


class Listener:
    """A bus that takes observations."""

    def __init__(self) -> None:
        self.heard: list[AllocationObserved] = []

    async def publish(self, _subject: str, payload: bytes, **_: Any) -> None:
        self.heard.append(msgspec.json.decode(payload, type=AllocationObserved))


async def _no_capacity() -> PoolCapacity:
    return PoolCapacity(pool="default", backend="kubernetes", nodes=())


@pytest.fixture
def bus() -> Listener:
    return Listener()


@pytest.fixture
def reports(bus: Listener) -> Reports:
    listening: Any = bus
    return Reports(
        pool="default", bus=listening, capacity=_no_capacity, clock=SystemClock(), settings=LoopSettings(retry_s=0.01)
    )


async def test_closed_nodes_are_said_once(bus: Listener, reports: Reports) -> None:
    publishing = asyncio.ensure_future(reports.publish_observations())
    try:
        reports.observed(ENDED)
        await eventually(lambda: bus.heard)
        await reports.report_again(ReportAgainRequest(heard={"1.a.1": 1}))
        await eventually(lambda: len(bus.heard) == 2)
    finally:
        await end(publishing)
    assert [one.closed_nodes for one in bus.heard] == [("n1",), ()]
    assert bus.heard[0].revision < bus.heard[1].revision


async def test_what_nobody_has_heard_yet_is_said_whole(bus: Listener, reports: Reports) -> None:
    reports.observed(ENDED)
    reports.repeat_all()
    publishing = asyncio.ensure_future(reports.publish_observations())
    try:
        await eventually(lambda: bus.heard)
    finally:
        await end(publishing)
    assert bus.heard[0].closed_nodes == ("n1",)
