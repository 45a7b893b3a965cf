"""By when a client has to come up with what it owes: a head, a body, its goodbye. Pure: time comes as an argument."""

from __future__ import annotations

from enum import Enum, auto

from libs.serving.limits import HttpLimits


class Owed(Enum):
    """What is expected of a client."""

    REQUEST = auto()
    """The first byte of a request, or of another one."""
    HEAD = auto()
    BODY = auto()
    NOTHING = auto()
    """It has asked, and an answer is owed to it."""
    GOODBYE = auto()
    """It has its last answer, and what it still sends is dropped."""


class Pace:
    """How long a client may take for each part of its requests.

    idle_s  how long a connection may rest between two requests
    now     in seconds of any clock that only goes forward
    """

    def __init__(self, limits: HttpLimits, *, idle_s: float, now: float) -> None:
        self._limits = limits
        self._idle_s = idle_s
        self._since = now
        self._received_bytes = 0
        self._patience_s = limits.head_s
        self.owed = Owed.REQUEST

    @property
    def due(self) -> float | None:
        """When patience ends; None while nothing is owed."""
        if self.owed is Owed.NOTHING:
            return None
        earned_s = self._received_bytes / self._limits.body_bytes_per_s if self.owed is Owed.BODY else 0.0
        return self._since + self._patience_s + earned_s

    def rest(self, now: float) -> None:
        """The client may ask for something else, or leave."""
        self._expect(Owed.REQUEST, self._idle_s, now)

    def begin_head(self, now: float) -> None:
        self._expect(Owed.HEAD, self._limits.head_s, now)

    def begin_body(self, now: float) -> None:
        self._expect(Owed.BODY, self._limits.body_s, now)
        self._received_bytes = 0

    def receive(self, size: int) -> None:
        """Count a piece of a body."""
        self._received_bytes += size

    def wait_for_us(self) -> None:
        self.owed = Owed.NOTHING

    def part(self, now: float) -> None:
        """The client has its last answer."""
        self._expect(Owed.GOODBYE, self._limits.linger_s, now)

    def excuse(self, now: float) -> None:
        """The client could not go on, because nobody was reading: what it owes begins anew."""
        if self.owed is not Owed.GOODBYE:
            self._since = now

    def _expect(self, owed: Owed, patience_s: float, now: float) -> None:
        self.owed, self._patience_s, self._since = owed, patience_s, now
