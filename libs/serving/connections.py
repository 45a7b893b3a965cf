"""Limits the connections of a server, so that its process never runs out of descriptors and memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import structlog
from starlette.types import Receive, Scope, Send

log = structlog.get_logger()

RESERVED_DESCRIPTORS: Final = 256
"""For what else a service has open: the database, the bus, files."""
_LOGGED_EVERY_S: Final = 10.0


class Admission(Enum):
    SERVED = auto()
    REFUSED = auto()
    """Its request is answered with 503 and ``Retry-After``."""
    CLOSED = auto()
    """There is no room even for that."""


class ConnectionLimit:
    """Admits new connections, and logs when there are too many."""

    def __init__(self, most: int, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._monotonic = monotonic
        self._refused = 0
        self._logged_at = float("-inf")

    def admit(self, connections: int) -> Admission:
        """What becomes of a connection that makes it ``connections`` in all."""
        if connections <= self._most:
            return Admission.SERVED
        self._refused += 1
        if self._monotonic() - self._logged_at >= _LOGGED_EVERY_S:
            log.warning("http.connection_limit", limit=self._most, refused=self._refused)
            self._logged_at = self._monotonic()
        return Admission.REFUSED if connections <= self._most + _spare(self._most) else Admission.CLOSED


def possible_connections(wanted: int, *, reserved: int = 0) -> int:
    """``wanted``, or as many as the operating system lets this process have; raises the soft limit on descriptors.

    reserved  descriptors for what else the service does, beyond the few that every service needs
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reserved += RESERVED_DESCRIPTORS
    needed = wanted + _spare(wanted) + reserved
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return wanted if allowed == needed else max(1, (allowed - reserved) * 10 // 11)


async def respond_unavailable(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond 503 with ``Retry-After``, without which training code would give up."""
    headers = [(b"retry-after", b"1"), (b"content-length", b"0"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _spare(most: int) -> int:
    return most // 10
