"""Brings a database to the newest schema. Safe to call from several services at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from libs.db.engine import sqlalchemy_url

MIGRATION_LOCK: Final = 0x5E50_1074


async def upgrade(url: str) -> None:
    """Apply the migrations that ``url`` lacks; concurrent callers wait for the first."""
    engine = create_async_engine(sqlalchemy_url(url), poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_upgrade)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection) -> None:
    # Held until the connection closes; a crash in the middle rolls back and frees it.
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    connection.commit()
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()


def main() -> None:
    import sys  # noqa: PLC0415

    asyncio.run(upgrade(sys.argv[1]))


if __name__ == "__main__":
    main()
