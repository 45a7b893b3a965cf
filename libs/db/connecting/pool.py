"""A pool of connections of the driver, for services whose statements are all written out: they do without SQLAlchemy.

It gives connections out as ``libs.db.engine`` does: the one that was used last first, none of which is known that it is
lost, and none that was left in the middle of something.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import asyncpg

from libs.db.availability import retry_until_available
from libs.db.connecting.settings import APPLICATION, DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS, may_be_starting, problem_of
from libs.db.storage_probe import LITTLE_MEMORY, WRITE_FILE, DatabaseStorage

RESTED_S: Final = 1.0
"""After so long without use, a connection is asked whether it is there before somebody gets it."""
_TURN_WITHIN_S: Final = 30.0
_FAREWELL_S: Final = 2.0


class DriverPool:
    """The connections of one process. Safe for concurrent use by any number of tasks."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self._turns = asyncio.Semaphore(settings.pool_size)
        self._free: list[tuple[Any, float]] = []
        """With when each was used last; the last one is given out first."""
        self._storage = DatabaseStorage(self._write_file)

    @property
    def url(self) -> str:
        """For the rare user that needs a connection of its own (LISTEN, session locks)."""
        return address(self._settings)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Any]:
        """One connection of asyncpg; each of its statements is a transaction.

        Raises TimeoutError when none becomes free, besides what asyncpg does.
        """
        async with asyncio.timeout(_TURN_WITHIN_S):
            await self._turns.acquire()
        try:
            connection = await self._take()
            try:
                yield connection
            except TimeoutError:  # the server may still carry out what has taken too long: a BEGIN, for one
                connection.terminate()
                raise
            except Exception:
                raise
            except BaseException:  # cancelled, perhaps in the middle of a statement, which the server may not end
                connection.terminate()
                raise
            finally:
                self._give_back(connection)
        finally:
            self._turns.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """One connection in a transaction: committed when the block ends, rolled back when it raises."""
        async with self.read() as connection:
            transaction = connection.transaction()
            await _whole(connection, transaction.start())
            try:
                yield connection
            except Exception:
                try:
                    await transaction.rollback()
                except (OSError, *DRIVER_ERRORS):  # lost; what went wrong before says more
                    connection.terminate()
                raise
            await _whole(connection, transaction.commit())

    async def ask(self) -> None:
        """Return when the database has answered. Raises what the driver does."""
        async with self.read() as connection:
            await connection.execute("SELECT 1")

    async def problem(self) -> str | None:
        """Why the database cannot be relied on now; None when it answers."""
        return await problem_of(self.ask)

    async def storage_problem(self) -> str | None:
        """``storage_probe.DatabaseStorage.problem``: why it cannot store anything now; None when it can."""
        return await self._storage.problem()

    async def close(self) -> None:
        """Say goodbye on those connections that nobody uses, to a server that may be gone without a word."""
        closing = [connection for connection, _ in self._free]
        self._free.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await asyncio.gather(*(each.close() for each in closing), return_exceptions=True)
        for each in closing:
            each.terminate()  # of one that is closed, nothing is left to do

    async def _write_file(self) -> None:
        async with self.transaction() as connection:
            await connection.execute(LITTLE_MEMORY)
            await connection.execute(WRITE_FILE)

    async def _take(self) -> Any:
        while self._free:
            connection, used_at = self._free.pop()
            if connection.is_closed():
                continue
            if connection.is_in_transaction():  # since it was given back: what is written in it would be undone
                connection.terminate()
                continue
            if time.monotonic() - used_at < RESTED_S or await _is_there(connection):
                return connection
            self._give_up_all()
        return await self._connect()

    def _give_back(self, connection: Any) -> None:
        if connection.is_closed():
            return
        if connection.is_in_transaction():  # whoever read in it would see what was long ago
            connection.terminate()
            return
        self._free.append((connection, time.monotonic()))

    def _give_up_all(self) -> None:
        """One that has rested for as long as those below it was lost, and they with it."""
        for connection, _ in self._free:
            connection.terminate()
        self._free.clear()

    async def _connect(self) -> Any:
        server_settings = {"application_name": APPLICATION, "jit": "off"}
        return await asyncpg.connect(
            address(self._settings), timeout=10, command_timeout=120, server_settings=server_settings
        )


async def _whole(connection: Any, step: Awaitable[None]) -> None:
    """Begin or end a transaction. A connection on which that failed is not used again: it may be in one, or not."""
    try:
        await step
    except Exception:
        connection.terminate()
        raise


async def _is_there(connection: Any) -> bool:
    try:
        await connection.execute("SELECT 1")
    except (OSError, *DRIVER_ERRORS):
        connection.terminate()
        return False
    except BaseException:
        connection.terminate()
        raise
    return True


@asynccontextmanager
async def connect_pool(settings: DatabaseSettings) -> AsyncIterator[DriverPool]:
    """A pool on a database that answers.

    Raises Unavailable when it does not within ``connect_timeout_s``.
    """
    pool = DriverPool(settings)
    try:
        await retry_until_available(pool.ask, timeout_s=settings.connect_timeout_s, is_transient=may_be_starting)
        yield pool
    finally:
        await pool.close()
