"""Lines on their way from the loggers of a service to the bus."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator

import msgspec
import pytest

from libs.events.service_log import LONGEST_LINE, ServiceLine
from libs.service_log.buffer import WAITING, LineBuffer
from libs.service_log.shipping import ship_lines


class Bus:
    """Remembers what was published."""

    def __init__(self) -> None:
        self.is_connected = True
        self.lines: list[tuple[str, ServiceLine]] = []
        self._news = asyncio.Condition()

    async def publish_core(self, subject: str, payload: bytes) -> None:
        self.lines.append((subject, msgspec.json.decode(payload, type=ServiceLine)))
        async with self._news:
            self._news.notify_all()

    async def has(self, count: int) -> None:
        async with asyncio.timeout(30), self._news:
            await self._news.wait_for(lambda: len(self.lines) >= count)


@pytest.fixture
def buffer() -> LineBuffer:
    return LineBuffer()


@pytest.fixture
def logger(buffer: LineBuffer) -> Iterator[logging.Logger]:
    logger = logging.getLogger("tests.service_log")
    logger.propagate = False
    logger.setLevel("INFO")
    logger.addHandler(buffer)
    yield logger
    logger.handlers.clear()


def taken(buffer: LineBuffer) -> list[str]:
    lines = []
    while (line := buffer.take()) is not None:
        lines.append(line.message)
    return lines


def test_a_stack_is_part_of_its_line(buffer: LineBuffer, logger: logging.Logger) -> None:
    def fail(password: str) -> None:
        raise ValueError("broken")

    try:
        fail("hunter" + "2")
    except ValueError:
        logger.exception("oh dear")
    (message,) = taken(buffer)
    assert message.startswith("oh dear\nTraceback")
    assert "hunter2" not in message, "local variables may be secrets"


def test_the_newest_lines_wait_and_no_line_is_endless(buffer: LineBuffer, logger: logging.Logger) -> None:
    for number in range(WAITING + 2):
        logger.info("line %d", number)
    logger.info("x" * 2 * LONGEST_LINE)
    lines = taken(buffer)
    assert (len(lines), lines[0]) == (WAITING, "line 3")
    assert len(lines[-1]) == LONGEST_LINE


async def test_lines_of_any_thread_are_shipped_in_order(buffer: LineBuffer, logger: logging.Logger) -> None:
    bus = Bus()
    logger.info("before")
    shipping = asyncio.create_task(ship_lines(bus, "subject", lines=buffer))
    await asyncio.sleep(0)
    thread = threading.Thread(target=logger.warning, args=("from a thread",))
    thread.start()
    thread.join()
    await bus.has(2)
    shipping.cancel()
    assert [(subject, line.level, line.message) for subject, line in bus.lines] == [
        ("subject", "INFO", "before"),
        ("subject", "WARNING", "from a thread"),
    ]


async def test_lines_wait_while_the_bus_is_away(buffer: LineBuffer, logger: logging.Logger) -> None:
    bus = Bus()
    bus.is_connected = False
    shipping = asyncio.create_task(ship_lines(bus, "subject", lines=buffer))
    logger.info("kept")
    await asyncio.sleep(0.1)
    assert bus.lines == []
    bus.is_connected = True
    await bus.has(1)
    shipping.cancel()
    assert bus.lines[0][1].message == "kept"
