"""Applies migrations: what a database that lacks some needs, and what services that find none to apply do without."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import DIALECT
from libs.db.schema.found import (
    FORMER_LOCK,
    FOUND,
    IS_THERE,
    LAST_OF_FORMER_LOCK,
    MIGRATION_LOCK,
    SCRIPTS,
    Schema,
    schema_as_found,
)


async def apply_migrations(url: str, to: str) -> None:
    """Bring ``url`` to the revision ``to``, unless it is there or of a newer release.

    Each migration is a transaction: after a failure the database has the last one that went through, and the next call
    goes on from there.
    """

    def connect() -> Awaitable[Any]:
        connecting: Awaitable[Any] = asyncpg.connect(asyncpg_url(url))
        return connecting

    engine = create_async_engine(DIALECT, async_creator=connect, poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_apply, to)
    finally:
        await engine.dispose()


def _apply(connection: Connection, to: str) -> None:
    # Held by the connection that migrates until it closes, over all migrations, each of which is a transaction: a crash
    # in the middle rolls the last one back and frees it.
    _lock(connection, MIGRATION_LOCK)
    if (_look(connection).found or "") < LAST_OF_FORMER_LOCK:
        _lock(connection, FORMER_LOCK)
        _bring(connection, min(to, LAST_OF_FORMER_LOCK))
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": FORMER_LOCK})
        connection.commit()
    _bring(connection, to)


def _lock(connection: Connection, key: int) -> None:
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": key})
    connection.commit()


def _look(connection: Connection) -> Schema:
    schema = schema_as_found(connection.scalar(text(FOUND)) if connection.scalar(text(IS_THERE)) else None)
    connection.commit()
    return schema


def _bring(connection: Connection, to: str) -> None:
    schema = _look(connection)
    if schema.is_known and schema.found != to:
        config = Config()
        config.set_main_option("script_location", str(SCRIPTS))
        config.set_main_option("recursive_version_locations", "true")
        config.attributes["connection"] = connection
        command.upgrade(config, to)
        connection.commit()
