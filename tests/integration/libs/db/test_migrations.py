"""The migrations lead to the tables that the code believes in."""

from __future__ import annotations

import asyncio
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from libs.db.engine import sqlalchemy_url
from libs.db.migrate import upgrade
from libs.db.tables import metadata


def _is_ours(_object: object, name: str | None, kind: str, _reflected: bool, _compared: object) -> bool:
    """Partitions belong to their table, and Alembic's own table to Alembic."""
    partition = bool(name) and kind == "table" and (str(name).startswith(("metrics_p", "task_logs_d")))
    return not partition and name != "alembic_version"


def _differences(connection: Connection) -> list[Any]:
    options = {"include_object": _is_ours, "compare_type": True, "compare_server_default": False}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


async def test_migrated_database_has_the_tables_of_the_code(database_url: str) -> None:
    engine = create_async_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    async with engine.connect() as connection:
        assert await connection.run_sync(_differences) == []
        sequences = await connection.run_sync(lambda sync: inspect(sync).get_sequence_names())
    assert {sequence.name for sequence in metadata._sequences.values()} <= set(sequences)


async def test_everybody_may_migrate_at_once(database_url: str) -> None:
    await asyncio.gather(*(upgrade(database_url) for _ in range(4)))
    engine = create_async_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    async with engine.connect() as connection:
        count = (await connection.execute(text("SELECT count(*) FROM users"))).scalar_one()
    assert count == 2, "what the first migration adds is added once"
