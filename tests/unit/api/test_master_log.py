"""The lines of all services, as the api keeps them for its readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec

from libs.bus import Message
from libs.events.service_log import ServiceLine
from libs.events.subjects import service_lines
from services.api.master_log import MasterLog

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def message(sequence: int, text: str, service: str = "scheduler") -> Message:
    line = ServiceLine(time=NOON, level="INFO", message=text)
    return Message(service_lines(service, "host.a"), msgspec.json.encode(line), {}, sequence, 1)


async def take_in(kept: MasterLog, *messages: Message) -> None:
    async def come() -> AsyncIterator[Message]:
        for each in messages:
            yield each

    await kept.take_in(come())


def shown(kept: MasterLog, first: int, at_most: int = 100) -> list[tuple[int, str]]:
    return [(line.id, line.message) for line in kept.since(first, at_most=at_most)]


async def test_lines_are_read_by_their_place_in_the_stream() -> None:
    kept = MasterLog()
    assert (kept.start_of_last(3), shown(kept, 0)) == (0, [])
    await take_in(kept, message(7, "a"), message(8, "b", "api"), message(10, "c"))
    assert shown(kept, 0) == [(7, "scheduler/host_a: a"), (8, "api/host_a: b"), (10, "scheduler/host_a: c")]
    assert [ident for ident, _ in shown(kept, 9)] == [10]
    assert [ident for ident, _ in shown(kept, 0, at_most=1)] == [7]
    assert [ident for ident, _ in shown(kept, kept.start_of_last(2))] == [8, 10]
    assert [ident for ident, _ in shown(kept, kept.start_of_last(99))] == [7, 8, 10]
    assert shown(kept, 11) == []


async def test_readers_wait_for_lines() -> None:
    kept = MasterLog()
    waiting = [asyncio.create_task(kept.wait_for(5, epoch=0)) for _ in range(2)]
    await take_in(kept, message(4, "too early"))
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    await take_in(kept, message(5, "now"))
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)


async def test_a_bus_that_begins_anew_begins_another_epoch() -> None:
    kept = MasterLog()
    await take_in(kept, message(7, "a"))
    waiting = asyncio.create_task(kept.wait_for(8, epoch=0))
    await asyncio.sleep(0)
    await take_in(kept, message(1, "b"))
    async with asyncio.timeout(30):
        await waiting
    assert (kept.epoch, shown(kept, 0)) == (1, [(1, "scheduler/host_a: b")])


async def test_what_cannot_be_read_is_passed_over() -> None:
    kept = MasterLog()
    await take_in(kept, Message(service_lines("api", "a"), b"nonsense", {}, 1, 1), message(2, "fine"))
    assert [ident for ident, _ in shown(kept, 0)] == [2]
