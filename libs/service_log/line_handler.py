"""Writes the lines of a log whole, also when the disk is full for a while.

A buffered stream keeps a part of what it could not write, and what comes next then begins in the middle of a line. Here
the newest lines wait, and how many were lost is said in their place as soon as there is space.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from typing import Final, TextIO

import structlog

WAITING: Final = 1000
"""Lines that may wait for space; of more, the oldest are lost."""


class LineHandler(logging.Handler):
    """Lines to a stream; any thread may log, as with every handler."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._begun = b""
        """What is left of a line that is there in part."""
        self._waiting: deque[bytes] = deque()
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n"
        except Exception:  # noqa: BLE001  as every handler does: a line that cannot be formatted must not stop who logs it
            self.handleError(record)
            return
        self._waiting.append(line.encode(errors="backslashreplace"))
        if len(self._waiting) > WAITING:
            self._waiting.popleft()
            self._lost += 1
        try:
            self._write_waiting()
        except OSError:
            return  # a full disk: the line waits, and so does who reads it
        except ValueError:  # the stream is closed: nothing will be written any more
            self._waiting.clear()
            self.handleError(record)
            return
        if self._lost:
            lost, self._lost = self._lost, 0
            structlog.get_logger().warning("log.lines_lost", lines=lost, reason="the log could not be written")

    def _write_waiting(self) -> None:
        """Raises OSError, and ValueError when the stream is closed."""
        while self._begun or self._waiting:
            piece = self._begun or self._waiting[0]
            written = self._write(piece)
            if not self._begun:
                self._waiting.popleft()
            self._begun = piece[written:]

    def _write(self, piece: bytes) -> int:
        try:
            descriptor = self._stream.fileno()
        except (OSError, ValueError):  # a stream in memory
            self._stream.write(piece.decode())
            return len(piece)
        return os.write(descriptor, piece)
