"""The last lines that this api has logged, for ``det master logs`` (spec/platform.md 12)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

KEPT: Final = 25_000


class MasterLogLine(Struct, frozen=True):
    id: int
    message: str
    moment: datetime
    level: str
    """Bare name: INFO, WARNING, ..."""


class MasterLog(logging.Handler):
    """A ring of lines that grows at one end and is read by id; readers may wait for more."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[MasterLogLine] = deque(maxlen=KEPT)
        self._next_id = 0
        self._news: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)
        except (TypeError, ValueError):
            self.handleError(record)
            return
        moment = datetime.fromtimestamp(record.created, UTC)
        self._lines.append(MasterLogLine(self._next_id, message, moment, record.levelname))
        self._next_id += 1
        if self._news is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)

    def since(self, first_id: int) -> list[MasterLogLine]:
        """The kept lines with this id or a later one, oldest first."""
        return [line for line in self._lines if line.id >= first_id]

    def start_of_last(self, count: int) -> int:
        """The id from which on ``count`` lines are there."""
        return max(self._next_id - count, 0)

    async def wait(self) -> None:
        """Return when there is a line that was not there before."""
        self._loop = asyncio.get_running_loop()
        if self._news is None:
            self._news = asyncio.Event()
        await self._news.wait()
        self._news.clear()
