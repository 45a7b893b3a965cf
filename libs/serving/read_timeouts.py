"""Time-outs of reading from a client: by when it has to send the rest of a head, of a body, or another request. Pure:
time comes as an argument.
"""

from __future__ import annotations

import math
from enum import Enum, auto

from libs.serving.limits import HttpLimits


class ReadPhase(Enum):
    """What is read from a client now."""

    KEEP_ALIVE = auto()
    """Nothing: it may begin a request, or leave."""
    HEAD = auto()
    BODY = auto()
    RESPONDING = auto()
    """Its request is complete, and it waits for the response."""
    LINGERING = auto()
    """It has its last response, and what it still sends is dropped."""


class ReadTimeouts:
    """How long a client may take for each part of its requests.

    idle_s  how long a connection may be idle between two requests
    now     in seconds of any clock that only goes forward
    """

    def __init__(self, limits: HttpLimits, *, idle_s: float, now: float) -> None:
        self._limits = limits
        self._idle_s = idle_s
        self._since = now
        self._body_bytes = 0
        self._timeout_s = limits.head_s
        self.phase = ReadPhase.KEEP_ALIVE

    @property
    def deadline(self) -> float | None:
        """When the time is over; None while the client waits for us."""
        if self.phase is ReadPhase.RESPONDING:
            return None
        earned_s = self._body_bytes / self._limits.body_bytes_per_s if self.phase is ReadPhase.BODY else 0.0
        return self._since + self._timeout_s + earned_s

    def begin_keep_alive(self, now: float) -> None:
        self._begin(ReadPhase.KEEP_ALIVE, self._idle_s, now)

    def begin_head(self, now: float) -> None:
        self._begin(ReadPhase.HEAD, self._limits.head_s, now)

    def begin_body(self, now: float) -> None:
        self._begin(ReadPhase.BODY, self._limits.body_s, now)
        self._body_bytes = 0

    def count_body(self, size: int) -> None:
        """Count a piece of a body, which earns time for the rest of it."""
        self._body_bytes += size

    def lift_from_body(self) -> None:
        """The rest of the body that is being read may take any time."""
        if self.phase is ReadPhase.BODY:
            self._timeout_s = math.inf

    def begin_responding(self) -> None:
        self.phase = ReadPhase.RESPONDING

    def begin_lingering(self, now: float) -> None:
        self._begin(ReadPhase.LINGERING, self._limits.linger_s, now)

    def restart(self, now: float) -> None:
        """Give the client the whole time again: it could not go on, because nobody was reading."""
        if self.phase is not ReadPhase.LINGERING:
            self._since = now

    def _begin(self, phase: ReadPhase, timeout_s: float, now: float) -> None:
        self.phase, self._timeout_s, self._since = phase, timeout_s, now
