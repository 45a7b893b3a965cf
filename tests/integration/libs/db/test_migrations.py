"""The migrations lead to the tables that the code believes in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import structs
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from libs.db.engine import DatabaseSettings
from libs.db.migrate import provide_schema, schema_of, upgrade
from libs.db.tables import metadata
from libs.errors import Unavailable


def _is_ours(_object: object, name: str | None, kind: str, _reflected: bool, _compared: object) -> bool:
    """Partitions belong to their table, and Alembic's own table to Alembic."""
    partition = bool(name) and kind == "table" and (str(name).startswith(("metrics_p", "task_logs_d")))
    return not partition and name != "alembic_version"


def _differences(connection: Connection) -> list[Any]:
    options = {"include_object": _is_ours, "compare_type": True, "compare_server_default": False}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


async def test_migrated_database_has_the_tables_of_the_code(database_url: str) -> None:
    engine = create_async_engine(database_url, poolclass=NullPool)
    async with engine.connect() as connection:
        assert await connection.run_sync(_differences) == []
        sequences = await connection.run_sync(lambda sync: inspect(sync).get_sequence_names())
    assert {sequence.name for sequence in metadata._sequences.values()} <= set(sequences)


async def test_the_newest_schema_is_the_one_that_alembic_comes_to(database_url: str) -> None:
    config = Config()
    config.set_main_option("script_location", "libs/db/migrations")
    schema = await schema_of(database_url)
    assert schema.newest == schema.found == ScriptDirectory.from_config(config).get_current_head()


async def test_service_waits_for_the_schema_that_somebody_else_provides(empty_database_url: str) -> None:
    settings = DatabaseSettings(url=empty_database_url, migrate=False)
    with pytest.raises(Unavailable, match="run: resolute db upgrade"):
        await provide_schema(structs.replace(settings, connect_timeout_s=0.01))
    assert (await schema_of(empty_database_url)).found is None, "nobody touched it"
    waiting = asyncio.create_task(provide_schema(settings))
    before = await upgrade(empty_database_url)
    await waiting
    assert (before.is_outdated, (await schema_of(empty_database_url)).is_outdated) == (True, False)


async def test_schema_of_a_newer_release_is_left_as_it_is(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    engine = create_async_engine(empty_database_url, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for migrate in (True, False):
        await provide_schema(DatabaseSettings(url=empty_database_url, migrate=migrate, connect_timeout_s=0.01))
    assert (await schema_of(empty_database_url)).found == "9999"


async def test_everybody_may_migrate_at_once(database_url: str) -> None:
    await asyncio.gather(*(upgrade(database_url) for _ in range(4)))
    engine = create_async_engine(database_url, poolclass=NullPool)
    async with engine.connect() as connection:
        count = (await connection.execute(text("SELECT count(*) FROM users"))).scalar_one()
    assert count == 2, "what the first migration adds is added once"
