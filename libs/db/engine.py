"""Connections and transactions. No transaction stays open across a network call to anything but the database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final

import asyncpg
import msgspec
import structlog
from msgspec import Meta, Struct
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from libs.errors import Unavailable

log = structlog.get_logger()

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


async def driver_connection(connection: AsyncConnection) -> Any:
    """The asyncpg connection below, for COPY and for statements on the hottest paths.

    It is in the transaction of ``connection`` only once SQLAlchemy has executed something in it; before that, each
    statement commits by itself. Execute something first, or use ``read()`` and asyncpg's own ``transaction()``.
    """
    raw = await connection.get_raw_connection()
    return raw.driver_connection


DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What asyncpg raises, besides OSError: the last when a connection ends under it at an awkward moment."""


_ABOUT_ARGUMENTS: Final = re.compile(r"number of query arguments|server expects \d+ arguments?")
_LOST: Final = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)


def is_connection_failure(error: BaseException) -> bool:
    """True when the database was lost or takes no connection now, rather than the statement wrong."""
    if is_refused_by_driver(error):
        return False
    if isinstance(error, DBAPIError) and (
        error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError))
    ):
        return True
    return isinstance(_driver_error(error), _LOST)


def _driver_error(error: BaseException) -> BaseException | None:
    """What asyncpg said, behind the error and the adapter of SQLAlchemy; they do not tell one refusal from another."""
    return error.orig.__cause__ if isinstance(error, DBAPIError) and error.orig is not None else error


def is_refused_by_driver(error: BaseException) -> bool:
    """True when asyncpg would not send the statement, because of its arguments: another try will end the same way.

    It says InterfaceError of that as well as of most that happens to a connection on this side of the wire.
    """
    cause = _driver_error(error)
    if not isinstance(cause, asyncpg.InterfaceError):
        return False
    return isinstance(cause, ValueError) or _ABOUT_ARGUMENTS.search(str(cause)) is not None


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
        await _wait_for(engine, settings)
        yield Database(engine, settings)
    finally:
        await engine.dispose()


async def _wait_for(engine: AsyncEngine, settings: DatabaseSettings) -> None:
    give_up_at = asyncio.get_running_loop().time() + settings.connect_timeout_s
    while True:
        try:
            async with engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
            return
        except (OSError, DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if asyncio.get_running_loop().time() > give_up_at:
                raise Unavailable(f"the database does not answer: {error}") from error
            log.info("database.waiting", error=str(error))
            await asyncio.sleep(0.5)
