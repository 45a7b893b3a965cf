"""Notifications and requests: what nobody keeps."""

from __future__ import annotations

import asyncio

import pytest

from libs.bus import Bus, BusSettings, CoreMessage, connect_bus
from libs.errors import InvalidRequest, NotFound, Unavailable
from libs.events.subjects import event, events_of, rpc
from tests.harness import NatsServer, eventually
from tests.harness.waiting import PATIENCE_S

PREVIEW = rpc("scheduler", "preview")


async def test_subscriber_hears_notifications_and_stream_messages(bus: Bus) -> None:
    heard: list[tuple[str, bytes]] = []

    async def hear(message: CoreMessage) -> None:
        heard.append((message.subject, message.data))
        if message.data == b"bad":
            raise RuntimeError("told to fail")

    subject = event("trial", 1, "state")
    async with bus.subscribe(events_of("trial"), hear):
        await bus.publish_core(subject, b"bad")
        await bus.publish(subject, b"kept")
        await eventually(lambda: heard == [(subject, b"bad"), (subject, b"kept")])


async def test_subscriber_is_told_of_gap(own_nats_server: NatsServer) -> None:
    gap = asyncio.Event()

    async def hear(_: CoreMessage) -> None:
        pass

    settings = BusSettings(url=own_nats_server.url, logs_max_bytes=2**28)
    async with connect_bus(settings) as bus, bus.subscribe("notifications", hear, on_gap=gap.set):
        assert not gap.is_set()
        own_nats_server.restart()
        async with asyncio.timeout(PATIENCE_S):
            await gap.wait()


async def test_request_is_answered_by_one_of_a_queue(bus: Bus) -> None:
    answered = 0

    async def answer(message: CoreMessage) -> bytes:
        nonlocal answered
        answered += 1
        return message.data.upper()

    async with bus.serve(PREVIEW, answer, queue="q"), bus.serve(PREVIEW, answer, queue="q"):
        assert await bus.request(PREVIEW, b"abc", timeout_s=2) == b"ABC"
    assert answered == 1


@pytest.mark.parametrize(
    "error", [NotFound("trial", 7), InvalidRequest("no such pool")], ids=lambda e: type(e).__name__
)
async def test_errors_of_the_family_reach_the_asker(bus: Bus, error: Exception) -> None:
    async def refuse(_: CoreMessage) -> bytes:
        raise error

    async with bus.serve(PREVIEW, refuse):
        with pytest.raises(type(error), match=f"^{error}$"):
            await bus.request(PREVIEW, b"", timeout_s=2)


async def test_bug_of_the_service_is_unavailable_to_the_asker(bus: Bus) -> None:
    async def fail(_: CoreMessage) -> bytes:
        raise KeyError("secret detail")

    async with bus.serve(PREVIEW, fail):
        with pytest.raises(Unavailable, match="failed to answer"):
            await bus.request(PREVIEW, b"", timeout_s=2)


async def test_request_without_service_is_unavailable(bus: Bus) -> None:
    with pytest.raises(Unavailable):
        await bus.request(PREVIEW, b"", timeout_s=2)
