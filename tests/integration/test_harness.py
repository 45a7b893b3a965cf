"""The servers that the other integration tests trust."""

from __future__ import annotations

import asyncpg

from tests.harness import PostgresServer


async def _query(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_database_is_migrated(database_url: str) -> None:
    assert await _query(database_url, "SELECT count(*) FROM alembic_version") == 1


async def test_committed_rows_survive_kill_of_postgres(postgres_server: PostgresServer, database_url: str) -> None:
    await _query(database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    busy = await asyncpg.connect(database_url.replace("+asyncpg", ""))  # its process outlives the postmaster a little
    postgres_server.restart()
    busy.terminate()
    assert await _query(database_url, "SELECT answer FROM kept") == 42
