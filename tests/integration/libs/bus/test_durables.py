"""A consumer that somebody meddled with is made right again, and whoever relies on it learns of the gap."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest

from libs.bus import Bus, BusSettings, Message, durables
from libs.events.subjects import ALL_EVENTS, EVENTS_STREAM, event
from libs.run_until_first_exits import end
from libs.telemetry import REGISTRY
from tests.harness import eventually

DURABLE = "test"
SUBJECT = event("trial", 1, "state")
OTHERS: dict[str, dict[str, Any]] = {
    "another filter": {"filter_subject": "resolute.v1.nothing.>"},
    "several filters": {"filter_subjects": ["resolute.v1.nothing.>", "resolute.v1.nobody.>"]},
    "new messages only": {"filter_subject": ALL_EVENTS, "deliver_policy": "new"},
    "no acknowledgements": {"filter_subject": ALL_EVENTS, "ack_policy": "none"},
    "pushed elsewhere": {"filter_subject": ALL_EVENTS, "deliver_subject": "elsewhere"},
    "headers only": {"filter_subject": ALL_EVENTS, "headers_only": True},
    "few at once": {"filter_subject": ALL_EVENTS, "max_ack_pending": 1},
    "soon forgotten": {"filter_subject": ALL_EVENTS, "inactive_threshold": 10**10},
}


class Listener:
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.gaps = 0

    async def hear(self, message: Message) -> None:
        self.heard.append(message.data)

    def on_gap(self) -> None:
        self.gaps += 1


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durables, "LOOK_EVERY_S", 0.02)


@asynccontextmanager
async def listening(bus: Bus) -> AsyncIterator[Listener]:
    listener = Listener()
    work = bus.consume(
        stream=EVENTS_STREAM, durable=DURABLE, filter=ALL_EVENTS, handler=listener.hear, on_gap=listener.on_gap
    )
    task = asyncio.ensure_future(work)
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ask(settings: BusSettings, action: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    client = await nats.connect(settings.url)
    try:
        reply = await client.request(f"$JS.API.CONSUMER.{action}", json.dumps(body or {}).encode())
        answer: dict[str, Any] = json.loads(reply.data)
        return answer
    finally:
        await client.close()


async def make_another(settings: BusSettings, other: dict[str, Any]) -> None:
    """Replace whatever there is by a consumer of the same name."""
    await ask(settings, f"DELETE.{EVENTS_STREAM}.{DURABLE}")
    config = {"durable_name": DURABLE, "ack_policy": "explicit", "deliver_policy": "all", **other}
    body = {"stream_name": EVENTS_STREAM, "config": config}
    answer = await ask(settings, f"DURABLE.CREATE.{EVENTS_STREAM}.{DURABLE}", body)
    assert "error" not in answer, answer


@pytest.mark.parametrize("other", OTHERS)
async def test_a_consumer_that_was_made_by_somebody_else_is_made_right(
    bus: Bus, bus_settings: BusSettings, other: str
) -> None:
    await make_another(bus_settings, OTHERS[other])
    await bus.publish(SUBJECT, b"1")
    async with listening(bus) as listener:
        await eventually(lambda: listener.heard == [b"1"])
        assert listener.gaps == 0  # it had not made one before


@pytest.mark.parametrize("other", OTHERS)
async def test_a_consumer_that_became_another_is_made_right_and_leaves_a_gap(
    bus: Bus, bus_settings: BusSettings, other: str
) -> None:
    async with listening(bus) as listener:
        await bus.publish(SUBJECT, b"1")
        await eventually(lambda: b"1" in listener.heard)
        await make_another(bus_settings, OTHERS[other])
        await eventually(lambda: listener.gaps)
        await bus.publish(SUBJECT, b"2")
        await eventually(lambda: b"2" in listener.heard)


async def test_a_consumer_that_was_paused_goes_on(bus: Bus, bus_settings: BusSettings) -> None:
    async with listening(bus) as listener:
        await bus.publish(SUBJECT, b"1")
        await eventually(lambda: b"1" in listener.heard)
        await ask(bus_settings, f"PAUSE.{EVENTS_STREAM}.{DURABLE}", {"pause_until": "2100-01-01T00:00:00Z"})
        await eventually(lambda: listener.gaps)
        await bus.publish(SUBJECT, b"2")
        await eventually(lambda: b"2" in listener.heard)


async def test_a_consumer_that_nobody_touched_leaves_no_gap(bus: Bus, bus_settings: BusSettings) -> None:
    for number in (b"1", b"2"):
        async with listening(bus) as listener:
            await bus.publish(SUBJECT, number)
            await eventually(lambda: number in listener.heard)  # noqa: B023  # awaited in the round
            assert listener.heard == [number]
            assert listener.gaps == 0


async def test_what_a_consumer_has_not_finished_is_shown_while_somebody_works_for_it(bus: Bus) -> None:
    def pending() -> float | None:
        return REGISTRY.get_sample_value("resolute_bus_consumer_pending", {"stream": EVENTS_STREAM, "durable": DURABLE})

    may_finish = asyncio.Event()

    async def hold(message: Message) -> None:
        await may_finish.wait()

    for number in range(3):
        await bus.publish(SUBJECT, b"%d" % number)
    work = asyncio.ensure_future(
        bus.consume(stream=EVENTS_STREAM, durable=DURABLE, filter=ALL_EVENTS, handler=hold, finish_s=0)
    )
    await eventually(lambda: pending() == 3)
    may_finish.set()
    await eventually(lambda: pending() == 0)
    await end(work)
    assert pending() is None
