"""Keeps the newest lines of all services, for ``det master logs`` (docs/reference/platform.md 12).

They come from the bus, which keeps them over restarts; the number of a line is its place in the stream there, the same
for every api.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterable
from contextlib import aclosing
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from libs.bus import Bus, Message
from libs.events.service_log import ServiceLine
from libs.events.subjects import SERVICE_LOG_KEPT, SERVICE_LOG_STREAM, speaker_of

log = structlog.get_logger(__name__)


class MasterLogLine(Struct, frozen=True):
    id: int
    message: str
    """With the name of the service before it."""
    moment: datetime
    level: str
    """Bare name: INFO, WARNING, ..."""


class MasterLog:
    """Lines by id; readers may wait for more."""

    def __init__(self) -> None:
        self._lines: deque[MasterLogLine] = deque(maxlen=SERVICE_LOG_KEPT)
        self.has_color = True
        """What ``log.color`` was set to. Lines are data without colors, so whoever shows them decides."""
        self.epoch = 0
        """Another one after the bus has lost what it kept: ids begin anew then."""
        self._news: Final = asyncio.Condition()

    async def follow(self, bus: Bus) -> None:
        """Take in the lines that are on the bus and those that come, until cancelled."""
        async with aclosing(bus.follow_stream(SERVICE_LOG_STREAM)) as messages:
            await self.take_in(messages)

    async def take_in(self, messages: AsyncIterable[Message]) -> None:
        async for message in messages:
            try:
                line = msgspec.json.decode(message.data, type=ServiceLine)
            except msgspec.DecodeError as error:
                # Said once more by whoever reads this line of ours: debug, and not on the bus by default.
                log.debug("service_log.unreadable", subject=message.subject, error=str(error))
                continue
            if self._lines and message.sequence <= self._lines[-1].id:
                self._lines.clear()
                self.epoch += 1
            text = f"{speaker_of(message.subject)}: {line.message}"
            self._lines.append(MasterLogLine(message.sequence, text, line.time, line.level))
            async with self._news:
                self._news.notify_all()

    def since(self, first_id: int, *, at_most: int) -> list[MasterLogLine]:
        """The first ``at_most`` of the kept lines with this id or a later one, in the order in which they came."""
        lines = self._lines.copy()
        skipped = bisect_left(lines, first_id, key=attrgetter("id"))
        return list(islice(lines, skipped, skipped + at_most))

    def start_of_last(self, count: int) -> int:
        """The id from which on ``count`` lines are there."""
        lines = self._lines
        return lines[max(len(lines) - count, 0)].id if lines else 0

    async def wait_for(self, line_id: int, *, epoch: int) -> None:
        """Return when a line with this id, or a later one, is there, or when it is another epoch."""
        async with self._news:
            await self._news.wait_for(lambda: self.epoch != epoch or (self._lines and self._lines[-1].id >= line_id))
