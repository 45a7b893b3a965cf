"""Looks up the allocation behind the token that a task pod was given.

A token brings lines for a while after its allocation has ended, because the last lines come last
(docs/reference/logs.md 13.8).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec import Struct

from libs.clock import Clock
from libs.db.connecting.pool import DriverPool
from libs.tokens import digest

MAX_CACHED: Final = 50_000

_SESSION: Final = "SELECT allocation_id, revoked_at FROM allocation_sessions WHERE token_hash = $1"


class Session(Struct, frozen=True):
    allocation: str
    revoked_at: datetime | None


class TokenCache:
    """Sessions by token, read from the database and remembered for a short time; unknown tokens are not remembered."""

    def __init__(
        self,
        *,
        db: DriverPool,
        clock: Clock,
        cache_s: float,
        grace_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._clock = clock
        self._cache_s = cache_s
        self._grace_s = grace_s
        self._monotonic = monotonic
        self._known: OrderedDict[bytes, tuple[float, Session]] = OrderedDict()

    async def allocation_of(self, token: str) -> str | None:
        """The allocation that may write with ``token``; None when there is none, which may change."""
        hashed = digest(token)
        session = self._remembered(hashed)
        if session is None:
            session = await self._read(hashed)
            if session is None:
                return None
            self._remember(hashed, session)
        ended = session.revoked_at
        if ended is not None and (self._clock.now() - ended).total_seconds() > self._grace_s:
            return None
        return session.allocation

    def _remembered(self, hashed: bytes) -> Session | None:
        found = self._known.get(hashed)
        if found is None or found[0] < self._monotonic():
            return None
        self._known.move_to_end(hashed)
        return found[1]

    def _remember(self, hashed: bytes, session: Session) -> None:
        self._known[hashed] = (self._monotonic() + self._cache_s, session)
        self._known.move_to_end(hashed)
        while len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)

    async def _read(self, hashed: bytes) -> Session | None:
        async with self._db.read() as connection:
            row = await connection.fetchrow(_SESSION, hashed)
        return Session(row["allocation_id"], row["revoked_at"]) if row is not None else None
