"""What durable consumers promise, with a real server that fails on the way."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from libs.bus import Bus, BusSettings, Message, connect_bus
from libs.errors import Unavailable
from libs.events.subjects import ALL_EVENTS, EVENTS_STREAM, event
from tests.harness import NatsServer, eventually
from tests.harness.waiting import PATIENCE_S

SUBJECT = event("trial", 1, "state")


@asynccontextmanager
async def running(work: Awaitable[None]) -> AsyncIterator[asyncio.Future[None]]:
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class Collector:
    """A handler that remembers, and fails as often as told."""

    def __init__(self, failures: int = 0) -> None:
        self.seen: list[bytes] = []
        self.deliveries: list[int] = []
        self._failures = failures

    async def __call__(self, message: Message) -> None:
        self.deliveries.append(message.delivered)
        if self._failures:
            self._failures -= 1
            raise RuntimeError("told to fail")
        self.seen.append(message.data)


def events(bus: Bus, handler: Collector, **options: float) -> Awaitable[None]:
    return bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=handler, **options)  # type: ignore[arg-type]


async def test_same_message_id_is_stored_once(bus: Bus) -> None:
    first = await bus.publish(SUBJECT, b"1", msg_id="outbox-1")
    assert await bus.publish(SUBJECT, b"1", msg_id="outbox-1") == first
    assert await bus.publish(SUBJECT, b"2", msg_id="outbox-2") == first + 1


async def test_failed_message_comes_again_and_headers_arrive(bus: Bus) -> None:
    handler = Collector(failures=2)
    await bus.publish(SUBJECT, b"1", headers={"ce-type": "trial.changed"})
    async with running(events(bus, handler)):
        await eventually(lambda: handler.seen == [b"1"])
    assert handler.deliveries == [1, 2, 3]


async def test_one_handler_sees_stream_order(bus: Bus) -> None:
    handler = Collector()
    for number in range(50):
        await bus.publish(SUBJECT, b"%d" % number)
    async with running(events(bus, handler)):
        await eventually(lambda: len(handler.seen) == 50)
    assert handler.seen == [b"%d" % number for number in range(50)]


async def test_handlers_run_side_by_side_up_to_concurrency(bus: Bus) -> None:
    busy, most, done = 0, 0, 0

    async def handler(_: Message) -> None:
        nonlocal busy, most, done
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.05)
        busy -= 1
        done += 1

    for number in range(20):
        await bus.publish(SUBJECT, b"%d" % number)
    work = bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=handler, concurrency=5)
    async with running(work):
        await eventually(lambda: done == 20)
    assert most == 5


async def test_slow_handler_keeps_its_message(bus: Bus) -> None:
    deliveries = []
    done = asyncio.Event()

    async def handler(message: Message) -> None:
        deliveries.append(message.delivered)
        await asyncio.sleep(12.5)  # two seconds between signs of life and four to spare, twice over
        done.set()

    await bus.publish(SUBJECT, b"1")
    one = bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=handler, ack_wait_s=6)
    two = bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=handler, ack_wait_s=6)
    async with running(one), running(two), asyncio.timeout(PATIENCE_S):
        await done.wait()
    assert deliveries == [1]


async def test_cancelled_consumer_finishes_and_acknowledges(bus: Bus) -> None:
    started, finished = asyncio.Event(), False

    async def handler(_: Message) -> None:
        nonlocal finished
        started.set()
        await asyncio.sleep(0.2)
        finished = True

    await bus.publish(SUBJECT, b"1")
    async with running(bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=handler)):
        await started.wait()
    assert finished
    again = Collector()
    await bus.publish(SUBJECT, b"2")
    async with running(events(bus, again)):
        await eventually(lambda: again.seen)
    assert again.seen == [b"2"]


async def test_cancelled_consumer_gives_back_what_cannot_finish(bus: Bus) -> None:
    started = asyncio.Event()

    async def handler(_: Message) -> None:
        started.set()
        await asyncio.sleep(60)

    await bus.publish(SUBJECT, b"1")
    work = bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=handler, finish_s=0.05)
    async with running(work):
        await started.wait()
    again = Collector()
    async with running(events(bus, again)):
        await eventually(lambda: again.seen == [b"1"])


async def test_consumer_survives_kill_and_restart_of_server(own_nats_server: NatsServer) -> None:
    handler = Collector()
    async with connect_bus(settings_of(own_nats_server)) as bus, running(events(bus, handler)):
        await bus.publish(SUBJECT, b"before")
        await eventually(lambda: handler.seen == [b"before"])
        own_nats_server.restart()
        await publish_with_retry(bus, b"after")
        # The first may come again: nobody knows whether its acknowledgement reached the disk before the kill.
        await eventually(lambda: [each for each in handler.seen if each != b"before"] == [b"after"])


async def test_consumer_survives_server_that_lost_its_disk(own_nats_server: NatsServer) -> None:
    handler = Collector()
    async with connect_bus(settings_of(own_nats_server)) as bus, running(events(bus, handler)):
        await bus.publish(SUBJECT, b"before")
        await eventually(lambda: handler.seen == [b"before"])
        own_nats_server.kill()
        shutil.rmtree(own_nats_server.store_directory)
        own_nats_server.start()
        await publish_with_retry(bus, b"after")
        await eventually(lambda: handler.seen == [b"before", b"after"])


async def test_publish_says_unavailable_while_server_is_down(own_nats_server: NatsServer) -> None:
    settings = settings_of(own_nats_server, request_timeout_s=0.3)
    async with connect_bus(settings) as bus:
        own_nats_server.kill()
        with pytest.raises(Unavailable):
            await bus.publish(SUBJECT, b"1", msg_id="1")
        own_nats_server.start()
        await publish_with_retry(bus, b"1")
        assert await publish_with_retry(bus, b"1") == 1, "it was stored once"


async def test_starting_service_gives_up_on_server_that_is_not_there() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        async with connect_bus(BusSettings(url="nats://127.0.0.1:1", connect_timeout_s=0.4)):
            pass


def settings_of(server: NatsServer, request_timeout_s: float = 3.0) -> BusSettings:
    return BusSettings(
        url=server.url, connect_timeout_s=PATIENCE_S, logs_max_bytes=2**28, request_timeout_s=request_timeout_s
    )


async def publish_with_retry(bus: Bus, payload: bytes) -> int:
    """Publish as the outbox relay does: again with the same id until the bus has it; returns its sequence."""
    while True:
        try:
            return await bus.publish(SUBJECT, payload, msg_id=payload.decode())
        except Unavailable:
            await asyncio.sleep(0.05)
