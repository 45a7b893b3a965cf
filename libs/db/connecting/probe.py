"""Asks over one connection whether the database answers and stores, for whoever has no pool on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from libs.db.failures import problem_of
from libs.db.storage_probe import LITTLE_MEMORY, WRITE_FILE, DatabaseStorage

_TIMEOUT_S: Final = 10.0


class DatabaseProbe:
    """Connects when it is first asked, and again after the connection was lost; those who ask take turns.

    url  where the database is and how to log in, asked for each connection: a password may change meanwhile
    """

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._connection: Any = None
        self._storage = DatabaseStorage(self._write_file)

    async def problem(self) -> str | None:
        """Why the database cannot be relied on now; None when it answers."""
        return await problem_of(self.ask)

    async def storage_problem(self) -> str | None:
        """Why it cannot store anything now; None when it can."""
        return await self._storage.problem()

    async def ask(self) -> None:
        """Return when it has answered. Raises what the driver does."""
        async with self._connected() as connection:
            await connection.execute("SELECT 1")

    async def close(self) -> None:
        async with self._turn:
            self._give_up()

    async def _write_file(self) -> None:
        async with self._connected() as connection, connection.transaction():
            await connection.execute(LITTLE_MEMORY)
            await connection.execute(WRITE_FILE)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        async with self._turn:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(
                    self._url(),
                    timeout=_TIMEOUT_S,
                    command_timeout=_TIMEOUT_S,
                    server_settings={"application_name": "resolute-probe", "tcp_keepalives_idle": "10"},
                )
            try:
                yield self._connection
            except BaseException:  # one that was left in the middle of a question is of no use for the next
                self._give_up()
                raise

    def _give_up(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
