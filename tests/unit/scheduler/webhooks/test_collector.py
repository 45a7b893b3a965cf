"""What becomes of messages whose deliveries are not stored: because their collector ends, or the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from libs.bus import Message
from libs.db.engine import Database
from libs.ids import new_uuid
from libs.webhooks.events import NewDelivery, TriggerType, WebhookEvent
from services.scheduler.webhooks.collector import Collector


async def hanging(*_: object) -> list[Any]:
    """The match of a database that never answers."""
    await asyncio.Event().wait()
    return []


async def test_what_is_under_way_at_the_end_is_given_back_at_once() -> None:
    collector = Collector(db=cast(Database, object()), match=hanging, news=lambda: None)
    message = cast(Message, object())
    running = asyncio.create_task(collector.run())
    in_the_batch = asyncio.create_task(collector.handle(message))
    await asyncio.sleep(0.01)
    behind_it = asyncio.create_task(collector.handle(message))
    await asyncio.sleep(0)
    running.cancel()
    late = asyncio.create_task(collector.handle(message))
    for each in (in_the_batch, behind_it, late):
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(each, timeout=5)


class StoringDatabase:
    """One whose transactions fail as long as it is broken, and which counts those that do not."""

    def __init__(self) -> None:
        self.broken = True
        self.stored = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        if self.broken:
            raise ConnectionError("the database is away")
        yield self
        self.stored += 1

    def is_in_transaction(self) -> bool:
        return True

    async def fetch(self, *_: object) -> list[object]:
        return []


async def one_delivery(*_: object) -> list[NewDelivery]:
    event = WebhookEvent(event_id=new_uuid(), event_type=TriggerType.CUSTOM, timestamp=1, test=True)
    return [NewDelivery(1, event)]


async def test_a_batch_that_cannot_be_stored_comes_again_and_the_next_one_is_taken() -> None:
    database, told = StoringDatabase(), list[None]()
    collector = Collector(db=cast(Database, database), match=one_delivery, news=lambda: told.append(None))
    messages = [cast(Message, object()) for _ in range(256)]
    running = asyncio.create_task(collector.run())
    try:
        failed = await asyncio.gather(*map(collector.handle, messages), return_exceptions=True)
        assert [str(error) for error in failed] == ["the database is away"] * 256, "none is acknowledged"
        assert (database.stored, told) == (0, [])
        database.broken = False
        assert await asyncio.gather(*map(collector.handle, messages)) == [None] * 256
        assert (database.stored, told) == (1, [None])
    finally:
        running.cancel()
