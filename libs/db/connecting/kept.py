"""One connection of a pool of SQLAlchemy that stays out of it between two reads that follow one another.

Taking a connection out of the pool and putting it back costs as much as all else that a small read does in its service.
Whoever takes one out otherwise has this one put back before, so that nobody waits for it, and no more connections are
made than without it.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from libs.db.lost_connections import RESTED_S, put_back_unused


class KeptConnection:
    """Of one engine, whose pool has ``size`` connections."""

    def __init__(self, engine: AsyncEngine, *, size: int) -> None:
        self._engine = engine
        self._size = size
        self._kept: tuple[Any, float] | None = None
        """The connection, as the pool gave it out, and when it was used last."""
        self._timer: asyncio.TimerHandle | None = None

    def reading(self) -> _Reading:
        """A block with a connection of the driver."""
        return _Reading(self)

    def put_back(self) -> None:
        """To the pool, where it is given out next."""
        kept, self._kept = self._kept, None
        if kept is not None:
            put_back_unused(*kept)

    def _put_back_rested(self) -> None:
        """Somebody may have begun to wait for one in the very moment in which this was kept."""
        self._timer = None
        if self._kept is None:
            return
        rests_s = time.monotonic() - self._kept[1]
        if rests_s >= RESTED_S:
            self.put_back()
        else:
            self._timer = asyncio.get_running_loop().call_later(RESTED_S - rests_s, self._put_back_rested)

    async def take(self) -> Any:
        """As the pool gives it out, which looks after connections that are lost, or in a transaction."""
        if self._kept is not None:
            taken, used_at = self._kept
            driver = taken.driver_connection
            if time.monotonic() - used_at < RESTED_S and not driver.is_closed() and not driver.is_in_transaction():
                self._kept = None
                return taken
            self.put_back()
        return await self._engine.raw_connection()

    def give_back(self, taken: Any) -> None:
        pool = self._engine.pool
        # Of a pool that has no more, somebody may be waiting for it.
        if self._kept is None and isinstance(pool, QueuePool) and pool.checkedout() < self._size:
            self._kept = (taken, time.monotonic())
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(RESTED_S, self._put_back_rested)
        else:
            taken.close()  # asks the database nothing: no transaction was begun


class _Reading:
    """What a generator with ``contextmanager`` would be, at a fraction of its cost."""

    __slots__ = ("_connections", "_taken")

    def __init__(self, connections: KeptConnection) -> None:
        self._connections: Final = connections
        self._taken: Any = None

    async def __aenter__(self) -> Any:
        self._taken = await self._connections.take()
        return self._taken.driver_connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._connections.give_back(self._taken)
        else:  # it may be lost, or in the middle of something
            self._taken.close()
