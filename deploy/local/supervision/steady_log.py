"""The log of the supervisor: goes on while the disk is full.

Space for the lines to come is kept beyond the end of the file, so that it is said which disk is full. Lines for which
even that is too little wait in memory, the newest, until there is space. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

KEPT_BYTES: Final = 64 * 1024
WAITING: Final = 200
"""Lines that wait for space; of more, the oldest are lost."""

_KEEP_SIZE: Final = 1
"""FALLOC_FL_KEEP_SIZE; see fallocate(2)."""


class SteadyLog:
    """Lines on an open file."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._begun = b""
        """What is left of a line that is there in part."""
        self._waiting: deque[bytes] = deque(maxlen=WAITING)
        self._libc = ctypes.CDLL(None, use_errno=True)

    def say(self, text: str) -> None:
        """Write a line, now or when there is space for it."""
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._waiting.append(f"{moment} {text}\n".encode())
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as there is space."""
        with suppress(OSError):  # no space: the lines go on waiting
            while self._begun or self._waiting:
                line = self._begun or self._waiting[0]
                written = os.write(self._descriptor, line)
                if not self._begun:
                    self._waiting.popleft()
                self._begun = line[written:]

    def keep_space(self) -> None:
        """Allocate what the next lines need beyond the end of the file, where the file system can do that."""
        end = os.fstat(self._descriptor).st_size
        # Where it fails, lines wait: that is seen when one is written.
        self._libc.fallocate(self._descriptor, _KEEP_SIZE, ctypes.c_long(end), ctypes.c_long(KEPT_BYTES))
