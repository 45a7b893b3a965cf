from __future__ import annotations

import asyncio

import pytest

from libs.errors import Unavailable
from libs.run_until_first_exits import end
from services.scheduler.workqueue.work_queue import Attention, Key
from tests.harness import eventually

ONE = Key("experiment", 1)
TWO = Key("experiment", 2)


async def test_key_is_looked_at_by_one_worker_and_again_when_poked_meanwhile() -> None:
    looks: list[Key] = []
    running: set[Key] = set()
    proceed = asyncio.Event()

    async def look(key: Key) -> float | None:
        assert key not in running
        running.add(key)
        looks.append(key)
        await proceed.wait()
        running.discard(key)
        return None

    attention = Attention(look)
    task = asyncio.create_task(attention.run())
    try:
        for _ in range(3):
            attention.poke(ONE)
        attention.poke(TWO)
        await eventually(lambda: running == {ONE, TWO})
        for _ in range(3):
            attention.poke(ONE)
        proceed.set()
        await eventually(lambda: attention.is_idle)
        assert sorted(looks) == [ONE, ONE, TWO]
    finally:
        await end(task)


async def test_what_fails_is_looked_at_again_and_others_meanwhile() -> None:
    looks: list[Key] = []

    async def look(key: Key) -> float | None:
        looks.append(key)
        if key == ONE and looks.count(ONE) == 1:
            raise ValueError("broken")
        return None

    attention = Attention(look)
    task = asyncio.create_task(attention.run())
    try:
        attention.poke(ONE)
        attention.poke(TWO)
        await eventually(lambda: looks.count(ONE) == 2)
        assert looks.count(TWO) == 1
    finally:
        await end(task)


async def test_key_may_ask_to_be_looked_at_later_and_the_earlier_time_counts() -> None:
    looks: list[Key] = []

    async def look(key: Key) -> float | None:
        looks.append(key)
        return 60.0 if len(looks) == 1 else None

    attention = Attention(look)
    task = asyncio.create_task(attention.run())
    try:
        attention.poke(ONE)
        await eventually(lambda: looks == [ONE] and attention.is_idle)
        attention.poke(ONE, after_s=0.01)
        attention.poke(ONE, after_s=90)
        await eventually(lambda: looks == [ONE, ONE])
    finally:
        await end(task)


async def test_whoever_asks_hears_when_a_look_has_ended_that_began_later() -> None:
    looks: list[asyncio.Event] = []

    async def look(key: Key) -> float | None:
        looks.append(asyncio.Event())
        await looks[-1].wait()
        return None

    attention = Attention(look)
    task = asyncio.create_task(attention.run())
    try:
        attention.poke(ONE)
        await eventually(lambda: len(looks) == 1)
        asked = [asyncio.create_task(attention.looked_at(ONE)) for _ in range(2)]
        await asyncio.sleep(0)
        looks[0].set()
        await eventually(lambda: len(looks) == 2)
        assert not any(one.done() for one in asked)
        looks[1].set()
        await asyncio.gather(*asked)
    finally:
        await end(task)


async def test_whoever_asks_hears_of_failures_and_of_the_end() -> None:
    started = asyncio.Event()

    async def look(key: Key) -> float | None:
        if key == ONE:
            raise ValueError("broken")
        started.set()
        await asyncio.Event().wait()
        return None

    attention = Attention(look)
    task = asyncio.create_task(attention.run())
    with pytest.raises(Unavailable):
        await attention.looked_at(ONE)
    running = asyncio.create_task(attention.looked_at(TWO))
    await started.wait()
    waiting = asyncio.create_task(attention.looked_at(TWO))
    await asyncio.sleep(0)
    await end(task)
    for asked in (running, waiting):
        with pytest.raises(Unavailable):
            await asked
