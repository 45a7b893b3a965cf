"""Probes whether the database can store anything, by a temporary file: while its disk is full it goes on reading.

Rows of a function that do not fit into ``work_mem`` go to a file of the server, which is deleted with the statement.
That needs no right, and leaves nothing behind (PostgreSQL manual, resource consumption, ``work_mem``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import asyncpg
import structlog

from libs.db.failures import driver_error, is_of_database

log = structlog.get_logger()

REMEMBERED_S: Final = 2.0
"""How long an answer is good for others who ask: anybody may, as often as he likes."""
LITTLE_MEMORY: Final = "SET LOCAL work_mem = '64kB'"
WRITE_FILE: Final = "SELECT count(*) FROM generate_series(1, 10000)"
DISK_FULL: Final = "its disk is full"


class DatabaseStorage:
    """What the last write came to; whoever asks at the same time shares it."""

    def __init__(self, write: Callable[[], Awaitable[object]]) -> None:
        """``write`` executes LITTLE_MEMORY and WRITE_FILE in one transaction."""
        self._write_file = write
        self._asking = asyncio.Lock()
        self._problem: str | None = None
        self._until = 0.0

    async def problem(self) -> str | None:
        """Why nothing can be stored now; None when something was."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() >= self._until:
                self._problem = await self._write()
                self._until = loop.time() + REMEMBERED_S
            return self._problem

    async def _write(self) -> str | None:
        try:
            await self._write_file()
        except Exception as error:
            if not is_of_database(error):
                raise
            cause = driver_error(error)
            log.warning("database.not_stored", error=str(cause))
            return f"does not store: {DISK_FULL if isinstance(cause, asyncpg.DiskFullError) else cause}"
        return None
