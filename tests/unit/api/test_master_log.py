from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Iterator

import pytest

from services.api.master_log import MasterLog


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("tests.master_log")
    logger.propagate = False
    logger.setLevel("INFO")
    yield logger
    logger.handlers.clear()


@pytest.fixture
def kept(logger: logging.Logger) -> MasterLog:
    kept = MasterLog()
    logger.addHandler(kept)
    return kept


def messages(kept: MasterLog, first: int, at_most: int = 100) -> list[str]:
    return [line.message for line in kept.since(first, at_most=at_most)]


def test_lines_are_read_by_id(kept: MasterLog, logger: logging.Logger) -> None:
    for number in range(5):
        logger.info("line %d", number)
    assert messages(kept, 3) == ["line 3", "line 4"]
    assert messages(kept, 0, at_most=2) == ["line 0", "line 1"]
    assert messages(kept, kept.start_of_last(2)) == ["line 3", "line 4"]
    assert messages(kept, kept.start_of_last(99)) == [f"line {number}" for number in range(5)]
    assert messages(kept, 5) == []


def test_only_the_last_lines_are_kept(kept: MasterLog, logger: logging.Logger) -> None:
    kept._lines = deque(maxlen=3)
    for number in range(5):
        logger.info("line %d", number)
    assert messages(kept, 0) == ["line 2", "line 3", "line 4"]
    assert messages(kept, 3) == ["line 3", "line 4"]


def test_a_stack_is_part_of_its_line(kept: MasterLog, logger: logging.Logger) -> None:
    def fail(password: str) -> None:
        raise ValueError("broken")

    try:
        fail("hunter" + "2")
    except ValueError:
        logger.exception("oh dear")
    (message,) = messages(kept, 0)
    assert message.startswith("oh dear\nTraceback")
    assert "hunter2" not in message, "local variables may be secrets"


async def test_readers_wait_for_lines_from_any_thread(kept: MasterLog, logger: logging.Logger) -> None:
    kept.attach()
    waiting = [asyncio.create_task(kept.wait_for(0)) for _ in range(2)]
    await asyncio.sleep(0)
    thread = threading.Thread(target=logger.info, args=("hello",))
    thread.start()
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)
    thread.join()
    await kept.wait_for(0)
    assert messages(kept, 0) == ["hello"]
