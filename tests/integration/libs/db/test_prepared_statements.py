"""Statements that go to the driver belong to the transaction that they stand in, as any others do."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select, text

from libs.db.audit.records import AuditedRequest, recorded
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, Database, connect_database
from libs.db.prepared.statements import PreparedStatement, as_document
from libs.db.tables.cluster import audit_records
from libs.db.transactions import in_transaction
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.services_role import ROLE

ADD = PreparedStatement("INSERT INTO node_overrides (node, draining) VALUES (:node, :draining) RETURNING node")
ALL = PreparedStatement("SELECT node FROM node_overrides WHERE node LIKE :nodes ORDER BY node")


async def undone(db: Database) -> list[str]:
    async with db.read() as connection:
        return [row["node"] for row in await ALL.rows(connection, nodes="undone-%")]


async def test_first_statement_of_a_transaction_is_undone_with_it(database_url: str) -> None:
    async def fail(connection: Connection) -> None:
        assert (await ADD.rows(connection, node="undone-a", draining=True))[0]["node"] == "undone-a"
        await ADD.rows(connection, node="undone-b", draining=True)
        raise ZeroDivisionError

    async with connect_database(DatabaseSettings(url=database_url)) as db:
        with pytest.raises(ZeroDivisionError):
            await in_transaction(db, fail)
        assert await undone(db) == []
        async with db.transaction() as connection:
            await ADD.rows(connection, node="undone-a", draining=True)
            await ADD.rows(connection, node="undone-b", draining=True)
        assert await undone(db) == ["undone-a", "undone-b"]


async def test_changes_that_only_the_driver_sees_are_audited(database_url: str) -> None:
    request = AuditedRequest(
        user_id=1,
        username="admin",
        allocation_id=None,
        address="127.0.0.1",
        request_id="r",
        action="a",
        target={},
        details={},
    )
    async with connect_database(DatabaseSettings(url=database_url)) as db:
        with recorded(request):
            async with db.transaction() as connection:
                await ALL.rows(connection, nodes="%")
            async with db.transaction() as connection:
                await ADD.rows(connection, node="audited", draining=True)
        async with db.read() as connection:
            assert (await connection.execute(select(audit_records.c.request_id))).scalars().all() == ["r"]


async def test_race_that_a_statement_loses_is_run_again(
    postgres_server: PostgresServer | ContainerPostgres, database_url: str
) -> None:
    postgres_server.execute(f"GRANT SET ON PARAMETER deadlock_timeout TO {ROLE.user}")
    rename = PreparedStatement("UPDATE node_overrides SET draining = NOT draining WHERE node = :node")
    tries: list[str] = []
    meeting = asyncio.Barrier(2)
    async with connect_database(DatabaseSettings(url=database_url)) as db:
        async with db.transaction() as connection:
            await ADD.rows(connection, node="race-a", draining=True)
            await ADD.rows(connection, node="race-b", draining=True)

        async def change(first: str, second: str) -> None:
            async def work(connection: Connection) -> None:
                await connection.execute(text("SET LOCAL deadlock_timeout = '10ms'"))
                await rename.rows(connection, node=first)
                tries.append(first)
                if len(tries) <= 2:
                    await meeting.wait()
                await rename.rows(connection, node=second)

            await in_transaction(db, work)

        await asyncio.wait_for(asyncio.gather(change("race-a", "race-b"), change("race-b", "race-a")), 30)
    assert len(tries) == 3


async def test_parameters_and_casts_are_told_apart(database_url: str) -> None:
    statement = PreparedStatement("SELECT :document::jsonb AS document, :n::int + :n AS twice")
    async with connect_database(DatabaseSettings(url=database_url)) as db, db.read() as connection:
        (row,) = await statement.rows(connection, document=as_document({"a": [1]}), n=2)
    assert row["document"] == {"a": [1]}
    assert row["twice"] == 4
