"""Connections to tasks that wait for the next request: making one costs more than most requests."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final

from services.api.proxy.dial import dial
from services.api.proxy.requests.connection import TaskConnection
from services.api.proxy.targets import Target

KEEP_ALIVE_S: Final = 1.5
"""How long a connection is kept: less than any usual server keeps it, because a request on one that is just being
closed can be repeated only where it does no harm."""


class ConnectionPool:
    """All connections of this replica that are idle."""

    def __init__(self, *, dial_timeout_s: float) -> None:
        self._dial_timeout_s = dial_timeout_s
        self._idle: defaultdict[Target, list[tuple[float, TaskConnection]]] = defaultdict(list)
        self._sweep: asyncio.TimerHandle | None = None

    async def take(self, target: Target, *, new: bool = False) -> TaskConnection:
        """A connection for one request, ``new`` for one that nobody has used. Raises NotReached."""
        idle = self._idle.get(target)
        while idle and not new:
            _, connection = idle.pop()  # the one that was used last, so that the others grow old
            if connection.can_be_reused:
                return connection
        return await dial(TaskConnection, target, timeout_s=self._dial_timeout_s)

    def give_back(self, target: Target, connection: TaskConnection) -> None:
        """Keep a connection whose response has been read, or close it."""
        if not connection.can_be_reused:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle[target].append((loop.time(), connection))
        if self._sweep is None:
            self._sweep = loop.call_later(KEEP_ALIVE_S, self._close_old)

    def close(self) -> None:
        """Close all that are idle."""
        if self._sweep is not None:
            self._sweep.cancel()
        for idle in self._idle.values():
            for _, connection in idle:
                connection.close()
        self._idle.clear()

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        oldest = None
        for target, idle in tuple(self._idle.items()):
            young = []
            for used_at, connection in idle:
                if used_at + KEEP_ALIVE_S > now and connection.can_be_reused:
                    young.append((used_at, connection))
                else:
                    connection.close()
            if young:
                self._idle[target] = young
                oldest = young[0][0] if oldest is None else min(oldest, young[0][0])
            else:
                del self._idle[target]
        self._sweep = None if oldest is None else loop.call_at(oldest + KEEP_ALIVE_S, self._close_old)
