"""The log writer's way of reading: batches in order, whoever writes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from libs.bus import Bus, BusSettings, CoreMessage, Message, connect_bus
from libs.events.subjects import LOGS_STREAM, log_shard, logs, logs_of_shard
from tests.harness import NatsServer, eventually
from tests.harness.waiting import PATIENCE_S
from tests.integration.libs.bus.test_consumer import running

TASK = "1.task"
SHARD = logs_of_shard(log_shard(TASK))


class Writer:
    """Stores batches, and fails as often as told."""

    def __init__(self, failures: int = 0, pause_s: float = 0.0) -> None:
        self.batches: list[list[bytes]] = []
        self.has_begun = False
        self._failures = failures
        self._pause_s = pause_s

    async def __call__(self, messages: Sequence[Message]) -> None:
        self.has_begun = True
        await asyncio.sleep(self._pause_s)
        if self._failures:
            self._failures -= 1
            raise RuntimeError("told to fail")
        self.batches.append([message.data for message in messages])

    @property
    def lines(self) -> list[bytes]:
        return [line for batch in self.batches for line in batch]


def work(bus: Bus, writer: Writer, max_messages: int = 10, max_wait_s: float = 0.05) -> Coroutine[Any, Any, None]:
    return bus.consume_batches(
        stream=LOGS_STREAM,
        durable="writer-0",
        filter=SHARD,
        handler=writer,
        max_messages=max_messages,
        max_wait_s=max_wait_s,
        finish_s=1,
    )


async def send(bus: Bus, first: int, last: int) -> list[bytes]:
    lines = [b"%d" % number for number in range(first, last)]
    for line in lines:
        await bus.publish(logs(TASK), line)
    return lines


async def test_batches_are_full_when_there_is_enough_and_ordered(bus: Bus) -> None:
    lines = await send(bus, 0, 95)
    writer = Writer()
    async with running(work(bus, writer)):
        await eventually(lambda: len(writer.lines) == 95)
    assert writer.lines == lines
    assert [len(batch) for batch in writer.batches] == [10] * 9 + [5]


async def test_acknowledged_batches_do_not_come_again(bus: Bus) -> None:
    await send(bus, 0, 5)
    first, second = Writer(), Writer()
    async with running(work(bus, first)):
        await eventually(lambda: len(first.lines) == 5)
    more = await send(bus, 5, 8)
    async with running(work(bus, second)):
        await eventually(lambda: second.lines == more)


async def test_failed_batch_is_tried_again_and_never_overtaken(bus: Bus) -> None:
    lines = await send(bus, 0, 30)
    writer = Writer(failures=2)
    async with running(work(bus, writer)):
        await eventually(lambda: len(writer.lines) == 30)
    assert writer.lines == lines


async def test_only_one_of_two_writers_works_until_it_leaves(bus: Bus) -> None:
    first, second = Writer(), Writer()
    async with running(work(bus, second)) as other:
        await asyncio.sleep(0)
        lines = await send(bus, 0, 20)
        await eventually(lambda: len(second.lines) == 20)
        async with running(work(bus, first)):
            lines += await send(bus, 20, 40)
            await eventually(lambda: len(second.lines) == 40)
            assert first.lines == []
            other.cancel()
            more = await send(bus, 40, 60)
            await eventually(lambda: len(first.lines) >= 20)
            assert first.lines[-20:] == more
    assert second.lines == lines


async def test_standby_continues_in_order_after_crash(bus: Bus, bus_settings: BusSettings) -> None:
    lines = await send(bus, 0, 30)
    survivor = Writer()
    async with connect_bus(bus_settings) as doomed_bus:
        stuck = Writer(pause_s=60)
        doomed = asyncio.ensure_future(work(doomed_bus, stuck))
        await eventually(lambda: stuck.has_begun)
        async with running(work(bus, survivor)):
            await asyncio.sleep(0.3)
            assert survivor.lines == []
            await doomed_bus._connection.client.close()  # as the server sees a process that was killed
            await eventually(lambda: len(survivor.lines) == 30)
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
    assert survivor.lines == lines


async def test_writer_survives_kill_and_restart_of_server(own_nats_server: NatsServer) -> None:
    settings = BusSettings(url=own_nats_server.url, connect_timeout_s=PATIENCE_S, logs_max_bytes=2**28)
    writer = Writer()
    reconnected = asyncio.Event()

    async def ignore(_: CoreMessage) -> None:
        pass

    async with (
        connect_bus(settings) as bus,
        bus.subscribe("notifications", ignore, on_gap=reconnected.set),
        running(work(bus, writer)),
    ):
        lines = await send(bus, 0, 25)
        await eventually(lambda: len(writer.lines) == 25)
        own_nats_server.restart()
        async with asyncio.timeout(PATIENCE_S):
            await reconnected.wait()
        lines += await send(bus, 25, 50)
        await eventually(lambda: len(set(writer.lines)) == 50)
    assert list(dict.fromkeys(writer.lines)) == lines
