"""Turns messages of the bus into deliveries, all that have come meanwhile in one transaction.

A message is acknowledged when its deliveries are committed: what a killed scheduler had in hand comes again, and makes
the same deliveries again, which are known by their ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from libs.bus import Message
from libs.db.engine import Database
from libs.webhooks.deliveries import enqueue_deliveries
from libs.webhooks.events import NewDelivery

Match = Callable[[Database, Sequence[Message]], Awaitable[Sequence[NewDelivery]]]


class Collector:
    """Handler of one durable consumer, with many messages under way."""

    def __init__(self, *, db: Database, match: Match, news: Callable[[], None]) -> None:
        self._db = db
        self._match = match
        self._news = news
        self._waiting: list[tuple[Message, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._has_ended = False

    async def handle(self, message: Message) -> None:
        """Returns when what follows of the message is committed. Raises what prevented it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, done))
        self._wake.set()
        if self._has_ended:
            done.cancel()
        await done

    async def run(self) -> None:
        """Work on what waits until cancelled, which cancels the handlers: their messages come again."""
        batch: list[tuple[Message, asyncio.Future[None]]] = []
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                batch, self._waiting = self._waiting, []
                try:
                    await self._store([message for message, _ in batch])
                except Exception as error:  # noqa: BLE001  # each handler raises it, and its message comes again
                    _settle(batch, error)
                else:
                    _settle(batch, None)
        finally:
            self._has_ended = True
            for _, done in (*batch, *self._waiting):
                done.cancel()

    async def _store(self, messages: Sequence[Message]) -> None:
        found = await self._match(self._db, messages)
        if not found:
            return
        async with self._db.transaction() as connection:
            await enqueue_deliveries(connection, found)
        self._news()


def _settle(batch: Sequence[tuple[Message, asyncio.Future[None]]], error: Exception | None) -> None:
    for _, done in batch:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
