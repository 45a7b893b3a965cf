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
from libs.db.schema.found import FOUND, IS_THERE, MIGRATION_LOCK, SCRIPTS, schema_as_found


async def apply_migrations(url: str, to: str) -> None:
    """Bring ``url`` to the revision ``to``, unless it is there or of a newer release."""

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
    # Held by the connection that migrates until it closes: a crash in the middle rolls back and frees it.
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    connection.commit()
    schema = schema_as_found(connection.scalar(text(FOUND)) if connection.scalar(text(IS_THERE)) else None)
    connection.commit()
    if schema.is_known and schema.found != to:
        config = Config()
        config.set_main_option("script_location", str(SCRIPTS))
        config.attributes["connection"] = connection
        command.upgrade(config, to)
        connection.commit()
