"""Connections and transactions. No transaction stays open across a network call to anything but the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from libs.db.availability import retry_until_available
from libs.db.failures import DRIVER_ERRORS, may_be_starting

SEARCHES_OF: Final = 5
"""One of so many connections of a pool may be in a search that runs long."""

Connection = AsyncConnection


class DatabaseSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str = "postgresql://postgres@127.0.0.1:5432/resolute"
    """``postgresql://user:password@host:port/name``."""
    pool_size: Annotated[int, Meta(ge=1)] = 10
    """Connections that one process keeps open at most."""
    connect_timeout_s: Annotated[float, Meta(gt=0)] = 60.0
    """How long a starting service waits for the database before it gives up."""


def sqlalchemy_url(url: str) -> str:
    """The same database, named the way SQLAlchemy wants it."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ValueError(f"database url {url!r} must look like postgresql://user@host:port/name")
    return f"postgresql+asyncpg://{rest}" if scheme in ("postgresql", "postgres") else url


def asyncpg_url(url: str) -> str:
    """The same database, named the way asyncpg wants it."""
    return "postgresql://" + url.partition("://")[2]


class Database:
    """The pool of one process. Safe for concurrent use by any number of tasks."""

    def __init__(self, engine: AsyncEngine, settings: DatabaseSettings) -> None:
        self._engine = engine
        self._settings = settings
        self.searches = asyncio.Semaphore(max(1, settings.pool_size // SEARCHES_OF))
        """Turns for statements that somebody's input makes slow: never all connections at once are theirs."""

    @property
    def url(self) -> str:
        """For the rare user that needs a connection of its own (LISTEN, session locks)."""
        return asyncpg_url(self._settings.url)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed when the block ends, rolled back when it raises."""
        async with self._engine.begin() as connection:
            yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """One connection for reading; statements see the newest commits, each for itself."""
        async with self._engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection

    async def problem(self) -> str | None:
        """Why the database cannot be relied on now; None when it answers."""
        try:
            await _answers(self._engine)
        except (OSError, DBAPIError, *DRIVER_ERRORS) as error:
            return f"does not answer: {error}"
        return None


async def driver_connection(connection: AsyncConnection) -> Any:
    """The asyncpg connection below, for COPY and for statements on the hottest paths.

    It is in the transaction of ``connection`` only once SQLAlchemy has executed something in it; before that, each
    statement commits by itself. Execute something first, or use ``read()`` and asyncpg's own ``transaction()``.
    """
    raw = await connection.get_raw_connection()
    return raw.driver_connection


@asynccontextmanager
async def connect_database(settings: DatabaseSettings) -> AsyncIterator[Database]:
    """A pool on a database that answers.

    Raises Unavailable when it does not within ``connect_timeout_s``.
    """
    engine = create_async_engine(
        sqlalchemy_url(settings.url),
        pool_size=settings.pool_size,
        max_overflow=0,
        pool_timeout=30,
        pool_pre_ping=True,  # a database that was restarted costs one retry instead of one failed request
        json_serializer=lambda value: msgspec.json.encode(value).decode(),
        json_deserializer=msgspec.json.decode,
        connect_args={
            "timeout": 10,
            "command_timeout": 120,
            "server_settings": {"application_name": "resolute", "jit": "off"},
        },
    )
    try:
        await retry_until_available(
            lambda: _answers(engine), timeout_s=settings.connect_timeout_s, is_transient=may_be_starting
        )
        yield Database(engine, settings)
    finally:
        await engine.dispose()


async def _answers(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("SELECT 1"))
