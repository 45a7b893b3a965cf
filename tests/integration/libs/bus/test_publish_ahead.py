"""Many messages sent without waiting in between: all of them, in order, and known to be stored."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from libs.bus import Bus, BusSettings, Message, Outbound, connect_bus
from libs.errors import Unavailable
from libs.events.subjects import ALL_EVENTS, EVENTS_STREAM, event
from libs.run_until_first_exits import end
from tests.harness import NatsServer, eventually


def message(number: int, *, trial: int | None = None, size: int = 1) -> Outbound:
    subject = event("trial", number if trial is None else trial, "state")
    return Outbound(subject, b"%d" % number + b" " * (size - 1), f"m-{number}")


async def stored(bus: Bus, count: int) -> list[int]:
    """The numbers of the messages in the stream, in its order, once there are ``count`` of them."""
    numbers: list[int] = []

    async def hear(message: Message) -> None:
        numbers.append(int(message.data))

    work = bus.consume(stream=EVENTS_STREAM, durable="test", filter=ALL_EVENTS, handler=hear)
    task = asyncio.ensure_future(work)
    await eventually(lambda: len(numbers) >= count)
    await end(task)
    return numbers


async def test_all_are_stored_in_order(bus: Bus) -> None:
    messages = [message(number) for number in range(200)]
    assert await bus.publish_ahead(messages) == 200
    assert await bus.publish_ahead(messages[150:]) == 50, "copies count as stored"
    assert await stored(bus, 200) == list(range(200))


async def test_messages_of_one_subject_follow_one_another(bus: Bus) -> None:
    messages = [message(0), message(1), message(2, trial=0), message(3)]
    assert await bus.publish_ahead(messages) == 2
    assert await bus.publish_ahead(messages[2:]) == 2


async def test_what_is_under_way_is_bounded(bus: Bus) -> None:
    assert await bus.publish_ahead([message(number, size=300_000) for number in range(8)]) == 3
    assert await bus.publish_ahead([message(8, size=3_000_000), message(9)]) == 1
    assert await bus.publish_ahead([message(number) for number in range(10, 1010)]) == 256


async def test_too_large_ones_are_left_out_and_do_no_harm(bus: Bus) -> None:
    headers = {"a": "b" * 500}
    subject, limit = event("trial", 1, "state"), 8 * 2**20
    room = limit - Outbound(subject, b"", headers=headers).size
    larger = Outbound(subject, b" " * (room + 1), headers=headers)
    assert not bus.fits(larger), "headers count"
    assert await bus.publish_ahead([Outbound(subject, b" " * room, headers=headers)]) == 1
    assert await bus.publish_ahead([larger, message(1)]) == 0
    assert await bus.publish_ahead([message(1), larger, message(2)]) == 1
    with pytest.raises(Unavailable, match="payload"):
        await bus.publish(larger.subject, larger.payload, headers=headers)
    assert await bus.publish_ahead([message(2)]) == 1, "the connection lives"


async def test_stream_that_is_gone_stores_nothing_until_it_is_provided_again(own_nats_server: NatsServer) -> None:
    async with connect_bus(BusSettings(url=own_nats_server.url, logs_max_bytes=2**28, manage_streams=True)) as bus:
        own_nats_server.kill()
        shutil.rmtree(own_nats_server.store_directory)
        with pytest.raises(Unavailable):
            await bus.publish_ahead([message(1)])
        own_nats_server.start()

        async def is_taken() -> bool:
            try:
                return await bus.publish_ahead([message(1), message(2)]) == 2
            except Unavailable:
                return False  # it has yet to notice that the server is another

        await eventually(is_taken)
