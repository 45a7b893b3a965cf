"""Brings a database to the newest schema. Safe to call from several services at once.

A schema that this release does not know is of a newer one, which has seen to it that the release before can work with
it (CONTRIBUTING.md, migrations): it is left as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import asyncpg
import structlog
from msgspec import Struct
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from libs.db.availability import retry_until_available
from libs.db.engine import DIALECT, DatabaseSettings, address, asyncpg_url
from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.retry import every, with_retry

log = structlog.get_logger()

MIGRATION_LOCK: Final = 0x5E50_1074
NEWEST: Final = "head"
_SCRIPTS: Final = Path(__file__).parent / "migrations"
_LOOK_EVERY_S: Final = 1.0


class SchemaOutdated(Unavailable):
    """The database lacks migrations, and it is for somebody else to apply them."""


class Schema(Struct, frozen=True, kw_only=True):
    """How a database stands to this release."""

    found: str | None
    """The revision of the database; None when it has no schema yet."""
    newest: str
    """The revision that this release brings it to."""
    is_known: bool
    """Whether this release has the migration that leads to ``found``; otherwise a newer one was here."""

    @property
    def is_outdated(self) -> bool:
        return self.is_known and self.found != self.newest


async def provide_schema(settings: DatabaseSettings) -> None:
    """Return when the database has the schema that a service needs: brought there, or waited for.

    Raises Unavailable when that takes longer than ``connect_timeout_s``.
    """
    if settings.migrate:
        await retry_until_available(lambda: upgrade(address(settings)), timeout_s=settings.connect_timeout_s)
    else:
        await with_retry(
            lambda: _expect_schema(settings),
            is_transient=lambda error: isinstance(error, SchemaOutdated) or is_connection_failure(error),
            on_retry=lambda error, attempt: log.info("database.waiting", error=str(error)),
            pause_s=every(_LOOK_EVERY_S),
            timeout_s=settings.connect_timeout_s,
        )


async def upgrade(url: str, *, to: str = NEWEST) -> Schema:
    """Apply the migrations that ``url`` lacks; concurrent callers wait for the first. Returns what it was before."""
    return await _on_connection(url, lambda connection: _upgrade(connection, to))


async def schema_of(url: str) -> Schema:
    """The schema of ``url``, which is left as it is."""
    return await _on_connection(url, _schema)


async def _expect_schema(settings: DatabaseSettings) -> None:
    schema = await schema_of(address(settings))
    if schema.is_outdated:
        raise SchemaOutdated(
            f"the database has the schema {schema.found or 'of nothing'}, and {schema.newest} is needed; run: resolute "
            "db upgrade"
        )


async def _on_connection(url: str, work: Callable[[Connection], Schema]) -> Schema:
    def connect() -> Awaitable[Any]:
        connecting: Awaitable[Any] = asyncpg.connect(asyncpg_url(url))
        return connecting

    engine = create_async_engine(DIALECT, async_creator=connect, poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, to: str) -> Schema:
    # Held until the connection closes; a crash in the middle rolls back and frees it.
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    connection.commit()
    schema = _schema(connection)
    connection.commit()
    if schema.is_known and schema.found != _revision(to):
        _migrate(connection, to)
    elif not schema.is_known:
        log.info("database.schema_of_newer_release", found=schema.found, newest_known=schema.newest)
    return schema


def _migrate(connection: Connection, to: str) -> None:
    # Alembic takes 6 MB, and a service that starts seldom finds something to do.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
    connection.commit()


def _schema(connection: Connection) -> Schema:
    known = revisions()
    found = None
    if connection.scalar(text("SELECT to_regclass('alembic_version')")) is not None:
        found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return Schema(found=found, newest=known[-1], is_known=found is None or found in known)


def _revision(name: str) -> str:
    return revisions()[-1] if name == NEWEST else name


def revisions() -> list[str]:
    """The migrations there are, in their order, which is that of their numbers: ``<revision>_<what>.py``."""
    return sorted(path.stem.partition("_")[0] for path in (_SCRIPTS / "versions").glob("[0-9]*.py"))
