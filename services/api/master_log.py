"""Keeps the newest lines that this api has logged, for ``det master logs`` (docs/reference/platform.md 12)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from itertools import islice
from typing import Final

import structlog
from msgspec import Struct

KEPT: Final = 25_000
_ELSEWHERE: Final = ("timestamp", "level", "service", "_record", "_from_structlog")
"""What a line has fields for, or what says nothing to its reader."""


class MasterLogLine(Struct, frozen=True):
    id: int
    message: str
    moment: datetime
    level: str
    """Bare name: INFO, WARNING, ..."""


class MasterLog(logging.Handler):
    """A ring of lines that grows at one end and is read by id; readers may wait for more.

    Any thread may log; reading and waiting belong to the event loop that called ``attach``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_formatter())
        self._lines: deque[MasterLogLine] = deque(maxlen=KEPT)
        self._next_id = 0
        self.has_color = True
        """What ``log.color`` was set to. Lines are data without colors, so whoever shows them decides."""
        self._news: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Let readers in the running loop hear of lines. Called once."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)
        except Exception:  # noqa: BLE001  as every handler does: a line that cannot be formatted must not stop who logs it
            self.handleError(record)
            return
        moment = datetime.fromtimestamp(record.created, UTC)
        self._lines.append(MasterLogLine(self._next_id, message, moment, record.levelname))
        self._next_id += 1
        if self._news is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    def since(self, first_id: int, *, at_most: int) -> list[MasterLogLine]:
        """The first ``at_most`` of the kept lines with this id or a later one, oldest first."""
        lines = self._lines.copy()
        skipped = max(first_id - lines[0].id, 0) if lines else 0
        return list(islice(lines, skipped, skipped + at_most))

    def start_of_last(self, count: int) -> int:
        """The id from which on ``count`` lines are there."""
        return max(self._next_id - count, 0)

    async def wait_for(self, line_id: int) -> None:
        """Return when a line with this id, or a later one, is there."""
        assert self._news is not None, "attach was not called"
        while self._next_id <= line_id:
            self._news.clear()
            await self._news.wait()


def _formatter() -> logging.Formatter:
    """``event key=value ...``, with the stack of an exception below it."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.contextvars.merge_contextvars],
        processors=[
            structlog.processors.format_exc_info,
            _without_fields_of_their_own,
            _rendered,
        ],
    )


def _without_fields_of_their_own(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {key: value for key, value in event.items() if key not in _ELSEWHERE}


def _rendered(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    fields = dict(event)
    stack = fields.pop("exception", None)
    line = " ".join([str(fields.pop("event", "")), *(f"{key}={value}" for key, value in fields.items())])
    return f"{line}\n{stack}" if stack else line
