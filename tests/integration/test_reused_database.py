"""Emptied, a database is what a new one would be."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import connect_database
from tests.builders import insert_experiment, insert_trial, insert_workspace
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.reused_database import ReusedDatabase


async def contents(url: str) -> dict[str, Any]:
    """Rows of all tables, in order, and where numbers go on."""
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        found: dict[str, Any] = {
            name: sorted(row[0] for row in await connection.fetch(f'SELECT t::text FROM public."{name}" t'))
            for (name,) in tables
        }
        sequences = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'"
        found["sequences"] = sorted(map(tuple, await connection.fetch(sequences)))
        return found
    finally:
        await connection.close()


async def test_it_is_as_new(postgres_server: PostgresServer | ContainerPostgres, database_template: str) -> None:
    database = ReusedDatabase(postgres_server, database_template)
    try:
        new = await contents(database.url)
        assert new["users"]
        async with connect_database(DatabaseSettings(url=database.url)) as db, db.transaction() as connection:
            await insert_workspace(connection, name="w")
            experiment = await insert_experiment(connection, config={"name": "e"})
            await insert_trial(connection, experiment_id=experiment)
        left = await asyncpg.connect(asyncpg_url(database.url))
        await left.execute("DELETE FROM groups")
        await left.execute("UPDATE users SET username = 'changed' WHERE id = 2")
        assert await contents(database.url) != new
        database.empty()
        assert await contents(database.url) == new
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
            await left.execute("SELECT 1")
    finally:
        database.drop()
