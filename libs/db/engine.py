"""Connections and transactions. No transaction stays open across a network call to anything but the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, Protocol

import asyncpg
import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from libs.db.audit.records import add_record, begin_records, watch_changes
from libs.db.availability import retry_until_available
from libs.db.connecting.kept import KeptConnection
from libs.db.connecting.settings import APPLICATION, DatabaseSettings, address
from libs.db.failures import may_be_starting, problem_of
from libs.db.lost_connections import replace_lost_connections
from libs.db.storage_probe import LITTLE_MEMORY, WRITE_FILE, DatabaseStorage

SEARCHES_OF: Final = 5
"""One of so many connections of a pool may be in a search that runs long."""

DIALECT: Final = "postgresql+asyncpg://"
"""For engines whose connections somebody else makes: SQLAlchemy does not understand all that a URL may say."""

_FAREWELL_S: Final = 2.0

Connection = AsyncConnection


class DriverConnection(Protocol):
    """A connection of asyncpg, as far as statements that only read need it."""

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        """Rows of one statement, which is prepared when it is asked for the first time."""


class Database:
    """The pool of one process. Safe for concurrent use by any number of tasks."""

    def __init__(self, engine: AsyncEngine, settings: DatabaseSettings) -> None:
        self._engine = engine
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._settings = settings
        self._kept = KeptConnection(engine, size=settings.pool_size)
        self._storage = DatabaseStorage(self._write_file)
        self.searches = asyncio.Semaphore(max(1, settings.pool_size // SEARCHES_OF))
        """Turns for statements that somebody's input makes slow: never all connections at once are theirs."""

    @property
    def url(self) -> str:
        """For the rare user that needs a connection of its own (LISTEN, session locks)."""
        return address(self._settings)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed when the block ends, rolled back when it raises. The audit log is part of it."""
        self._kept.put_back()
        async with self._engine.begin() as connection:
            begin_records(connection)
            yield connection
            await add_record(connection)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """One connection for reading; statements see the newest commits, each for itself."""
        self._kept.put_back()
        async with self._reading.connect() as connection:
            yield connection

    def read_prepared(self) -> AbstractAsyncContextManager[DriverConnection]:
        """As ``read``, for prepared statements alone: what SQLAlchemy does around them costs more than they do."""
        return self._kept.reading()

    async def close(self) -> None:
        """Say goodbye on the connections that nobody uses."""
        self._kept.put_back()
        await self._engine.dispose()

    async def problem(self) -> str | None:
        """Why the database cannot be relied on now; None when it answers."""
        self._kept.put_back()
        return await problem_of(lambda: _answers(self._engine))

    async def storage_problem(self) -> str | None:
        """``storage_probe.DatabaseStorage.problem``: why it cannot store anything now; None when it can."""
        return await self._storage.problem()

    async def _write_file(self) -> None:
        self._kept.put_back()
        async with self._engine.connect() as connection:
            await connection.execute(text(LITTLE_MEMORY))
            await connection.execute(text(WRITE_FILE))


async def driver_connection(connection: AsyncConnection | DriverConnection) -> Any:
    """The asyncpg connection below, for COPY and for statements on the hottest paths; one of ``read_prepared`` itself.

    It is in the transaction of ``connection`` only once SQLAlchemy has executed something in it; before that, each
    statement commits by itself. Execute something first, or use ``read()`` and asyncpg's own ``transaction()``.
    """
    if not isinstance(connection, AsyncConnection):
        return connection
    below = connection.sync_connection
    if below is not None and not below.closed and not below.invalidated:
        return below.connection.driver_connection  # there already, and no greenlet is needed to look at it
    raw = await connection.get_raw_connection()
    return raw.driver_connection


@asynccontextmanager
async def connect_database(settings: DatabaseSettings) -> AsyncIterator[Database]:
    """A pool on a database that answers.

    Raises Unavailable when it does not within ``connect_timeout_s``.
    """

    def connect() -> Awaitable[Any]:
        server_settings = {"application_name": APPLICATION, "jit": "off"}
        connecting: Awaitable[Any] = asyncpg.connect(
            address(settings), timeout=10, command_timeout=120, server_settings=server_settings
        )
        return connecting

    engine = create_async_engine(
        DIALECT,
        async_creator=connect,
        pool_size=settings.pool_size,
        max_overflow=0,
        pool_timeout=30,
        # The one that was used last needs no question whether it is still there, and has its statements prepared.
        pool_use_lifo=True,
        json_serializer=lambda value: msgspec.json.encode(value).decode(),
        json_deserializer=msgspec.json.decode,
    )
    watch_changes(engine)
    db = Database(engine, settings)
    replace_lost_connections(engine)
    try:
        await retry_until_available(
            lambda: _answers(engine), timeout_s=settings.connect_timeout_s, is_transient=may_be_starting
        )
        yield db
    finally:
        # Each idle connection says goodbye to a server that may be gone without a word.
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await db.close()


async def _answers(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("SELECT 1"))
