"""Lines that this process has logged and that are not on the bus yet; the newest, as many as may wait."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from typing import Final

import structlog

from libs.events.service_log import LONGEST_LINE, ServiceLine

WAITING: Final = 2_000
"""Lines that may wait for the bus; the oldest of more are on standard error only."""
_ELSEWHERE: Final = ("timestamp", "level", "service", "_record", "_from_structlog")
"""What a line has fields for, or what says nothing to its reader."""


class LineBuffer(logging.Handler):
    """Any thread may log; taking and waiting belong to one event loop at a time, which calls ``attach``."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_formatter())
        self._lines: deque[ServiceLine] = deque(maxlen=WAITING)
        self._news: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Let the running loop hear of lines."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        if self._lines:
            self._news.set()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)
        except Exception:  # noqa: BLE001  as every handler does: a line that cannot be formatted must not stop who logs it
            self.handleError(record)
            return
        moment = datetime.fromtimestamp(record.created, UTC)
        self._lines.append(ServiceLine(time=moment, level=record.levelname, message=message[:LONGEST_LINE]))
        if self._news is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def wait(self) -> None:
        """Return when there are lines to take."""
        assert self._news is not None, "attach was not called"
        while not self._lines:
            self._news.clear()
            await self._news.wait()

    def take(self) -> ServiceLine | None:
        """The oldest line, which is no longer here; None when there is none."""
        try:
            return self._lines.popleft()
        except IndexError:
            return None


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


LINES: Final = LineBuffer()
"""Of this process; a service that starts has its loggers write there."""
