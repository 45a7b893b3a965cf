"""What becomes of messages that are under way when their collector ends: a service that is stopped waits for nobody."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from libs.bus import Message
from libs.db.engine import Database
from services.scheduler.webhooks.collector import Collector


class HangingDatabase:
    """One that never answers."""

    def read(self) -> Any:
        return self

    async def __aenter__(self) -> None:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        return None


async def nothing(*_: object) -> list[Any]:
    return []


async def test_what_is_under_way_at_the_end_is_given_back_at_once() -> None:
    collector = Collector(db=cast(Database, HangingDatabase()), match=nothing, news=lambda: None)
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
