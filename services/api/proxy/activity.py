"""Activity of interactive tasks: notes when each was last used through the proxy, which decides about idle time-outs.

An open connection is use. What happens between two writes is written as one, so that a busy notebook costs a row every
few seconds and no more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import structlog
from sqlalchemy import update

from libs.clock import Clock
from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.interactive import interactive_tasks
from services.api.http.database_errors import is_away

WRITE_EVERY_S: Final = 5.0

log = structlog.get_logger()


class Activity:
    """What this replica has seen being used."""

    def __init__(self, *, db: Database, clock: Clock, write_every_s: float = WRITE_EVERY_S) -> None:
        self._db = db
        self._clock = clock
        self._write_every_s = write_every_s
        self._open: Counter[str] = Counter()
        self._used: set[str] = set()
        self._news = asyncio.Event()

    def note(self, task_id: str) -> None:
        """Somebody uses the task now."""
        self._used.add(task_id)
        if not self._news.is_set():
            self._news.set()

    def opened(self, task_id: str) -> None:
        """Somebody uses the task until ``closed`` is called."""
        self._open[task_id] += 1
        self.note(task_id)

    def closed(self, task_id: str) -> None:
        self._open[task_id] -= 1
        if not self._open[task_id]:
            del self._open[task_id]
        self.note(task_id)

    async def run(self) -> None:
        """Write what is used, until cancelled."""
        while True:
            if not self._open:
                await self._news.wait()
            self._news.clear()
            await self.write()
            await asyncio.sleep(self._write_every_s)

    async def write(self) -> None:
        """Write what was used since the last time, and what is in use; kept for the next time when that fails."""
        used = self._used | self._open.keys()
        self._used = set()
        if not used:
            return
        values = {"last_active_at": self._clock.now()}
        of_them = any_of(interactive_tasks.c.task_id, used)
        try:
            async with self._db.transaction() as connection:
                await connection.execute(update(interactive_tasks).where(of_them).values(values))
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("proxy.activity_not_written", tasks=len(used), error=str(error))
            self._used |= used
