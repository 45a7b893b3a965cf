"""Transactions that lose a race are done again, and others are not."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.transactions import in_transaction
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.services_role import ROLE


async def test_both_sides_of_a_deadlock_get_through(
    postgres_server: PostgresServer | ContainerPostgres, database_url: str
) -> None:
    # Not to wait for a second; services leave that setting alone.
    postgres_server.execute(f"GRANT SET ON PARAMETER deadlock_timeout TO {ROLE.user}")
    tries: list[str] = []
    meeting = asyncio.Barrier(2)
    async with connect_database(DatabaseSettings(url=database_url)) as db:
        async with db.transaction() as connection:
            await connection.execute(text("CREATE TABLE pair AS SELECT 1 AS id, 0 AS n UNION ALL SELECT 2, 0"))

        async def add(first: int, second: int) -> None:
            async def work(connection: AsyncConnection) -> None:
                add_one = text("UPDATE pair SET n = n + 1 WHERE id = :id")
                await connection.execute(text("SET LOCAL deadlock_timeout = '10ms'"))
                await connection.execute(add_one, {"id": first})
                tries.append("try")
                if len(tries) <= 2:
                    await meeting.wait()
                await connection.execute(add_one, {"id": second})

            await in_transaction(db, work)

        await asyncio.wait_for(asyncio.gather(add(1, 2), add(2, 1)), 30)
        async with db.read() as connection:
            rows = await connection.execute(text("SELECT id, n FROM pair ORDER BY id"))
            assert [tuple(row) for row in rows] == [(1, 2), (2, 2)]
    assert len(tries) == 3


async def test_mistake_is_not_repeated(database_url: str) -> None:
    tries: list[str] = []

    async def work(connection: AsyncConnection) -> None:
        tries.append("try")
        await connection.execute(text("SELECT 1 / 0"))

    async with connect_database(DatabaseSettings(url=database_url)) as db:
        with pytest.raises(DBAPIError, match="division by zero"):
            await in_transaction(db, work)
    assert tries == ["try"]
