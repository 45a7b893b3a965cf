"""Which connections a pool of the driver gives out, what becomes of those that were left half-way, and what its
transactions keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from asyncpg.transaction import Transaction

from libs.db.connecting import pool as pool_module
from libs.db.connecting.pool import DriverPool, connect_pool
from libs.db.connecting.settings import DatabaseSettings
from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from tests.harness import PostgresServer, eventually
from tests.harness.containers import ContainerPostgres


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[DriverPool]:
    async with connect_pool(DatabaseSettings(url=database_url, pool_size=2)) as pool:
        yield pool


async def process_of(pool: DriverPool) -> Any:
    async with pool.read() as connection:
        return await connection.fetchval("SELECT pg_backend_pid()")


async def test_those_who_come_one_after_another_share_a_connection(pool: DriverPool) -> None:
    async with pool.read() as first, pool.read() as second:
        assert first is not second
    assert len({await process_of(pool) for _ in range(3)}) == 1


async def test_nobody_waits_for_ever_for_a_connection(pool: DriverPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_TURN_WITHIN_S", 0.05)
    async with pool.read(), pool.read():
        with pytest.raises(TimeoutError) as nobody:
            await process_of(pool)
    assert is_connection_failure(nobody.value)
    assert await process_of(pool)


async def test_a_transaction_is_kept_whole_or_not_at_all(pool: DriverPool) -> None:
    async with pool.transaction() as connection:
        await connection.execute("CREATE TABLE kept (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        await connection.execute("INSERT INTO kept VALUES (1)")

    async def write(*statements: str) -> None:
        async with pool.transaction() as connection:
            for each in statements:
                await connection.execute(each)

    with pytest.raises(asyncpg.DivisionByZeroError):
        await write("INSERT INTO kept VALUES (2)", "SELECT 1 / 0")
    with pytest.raises(asyncpg.UniqueViolationError):  # which the commit finds
        await write("INSERT INTO kept VALUES (1)")
    async with pool.read() as connection:
        assert await connection.fetchval("SELECT array_agg(id) FROM kept") == [1]


async def test_what_was_cancelled_in_the_middle_is_undone_and_its_connection_is_not_given_out(
    database_url: str, pool: DriverPool
) -> None:
    async with connect_pool(DatabaseSettings(url=database_url, pool_size=1)) as small:
        async with small.transaction() as connection:
            await connection.execute("CREATE TABLE undone (id int)")
        process = await process_of(small)

        async def write() -> None:
            async with small.transaction() as connection:
                await connection.execute("INSERT INTO undone VALUES (1)")
                await connection.execute("SELECT pg_sleep(600)")

        writing = asyncio.create_task(write())

        async def sleeps() -> bool:
            async with pool.read() as connection:
                asked = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'"
                return bool(await connection.fetchval(asked, process))

        await eventually(sleeps)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await process_of(small) != process
        async with small.read() as connection:
            assert await connection.fetchval("SELECT count(*) FROM undone") == 0


async def test_a_connection_that_was_given_back_in_a_transaction_is_replaced(database_url: str) -> None:
    async with connect_pool(DatabaseSettings(url=database_url, pool_size=1)) as pool:
        process = await process_of(pool)
        async with pool.read() as connection:
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert await process_of(pool) != process


async def nothing_in(pool: DriverPool) -> None:
    async with pool.transaction():
        pass


@pytest.mark.parametrize("step", ["start", "commit"])
async def test_a_connection_that_may_be_in_a_transaction_is_not_given_out(
    database_url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """As of a server that stands still until the driver gives up, and begins when it goes on."""

    async def too_long(transaction: Transaction) -> None:
        raise TimeoutError

    async with connect_pool(DatabaseSettings(url=database_url, pool_size=1)) as pool:
        process = await process_of(pool)
        monkeypatch.setattr(Transaction, step, too_long)
        with pytest.raises(TimeoutError):
            await nothing_in(pool)
        assert await process_of(pool) != process


async def test_a_connection_that_is_in_a_transaction_by_now_is_not_given_out(database_url: str) -> None:
    async with connect_pool(DatabaseSettings(url=database_url, pool_size=1)) as pool:
        async with pool.read() as connection:
            process = await connection.fetchval("SELECT pg_backend_pid()")
        await connection.execute("BEGIN")
        assert await process_of(pool) != process


@pytest.mark.parametrize("rested_s", [0.0, 600.0], ids=["asked before use", "known to be closed"])
async def test_connections_that_were_lost_are_replaced_before_anybody_gets_them(
    pool: DriverPool,
    postgres_server: PostgresServer | ContainerPostgres,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    rested_s: float,
) -> None:
    monkeypatch.setattr(pool_module, "RESTED_S", rested_s)
    async with pool.read() as first, pool.read() as second:
        lost = [await each.fetchval("SELECT pg_backend_pid()") for each in (first, second)]
    name = database_url.rpartition("/")[2]
    # Returns when they have ended, before this event loop has heard of it.
    ended = f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'"
    postgres_server.execute(ended)
    if rested_s:
        await eventually(lambda: first.is_closed() and second.is_closed())
    async with pool.read() as one, pool.read() as other:
        found = [await each.fetchval("SELECT pg_backend_pid()") for each in (one, other)]
    assert not set(found) & set(lost)


async def test_it_says_what_keeps_the_database_from_answering(pool: DriverPool) -> None:
    assert (await pool.problem(), await pool.storage_problem()) == (None, None)
    nowhere = DatabaseSettings(url="postgresql://postgres@127.0.0.1:9/nobody", connect_timeout_s=0.1)
    assert str(await DriverPool(nowhere).problem()).startswith("does not answer: ")
    with pytest.raises(Unavailable, match="does not answer"):
        async with connect_pool(nowhere):
            raise AssertionError("nobody is there")
