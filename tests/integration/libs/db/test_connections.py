"""Which of the connections of a pool a read gets, and that none is lost by it."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

from libs.db.connecting.kept import KeptConnection
from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.db.lost_connections import RESTED_S
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.waiting import eventually

_SLEEPING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"


async def test_reads_one_at_a_time_share_a_connection_however_many_there_are(database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=3)) as db:
        together = asyncio.Barrier(3)
        assert len(set(await asyncio.gather(*(_server_process(db, together) for _ in range(3))))) == 3
        alone = asyncio.Barrier(1)
        assert len({await _server_process(db, alone) for _ in range(3)}) == 1


async def _server_process(db: Database, others: asyncio.Barrier) -> int:
    async with db.read() as connection:
        process = await connection.scalar(text("SELECT pg_backend_pid()"))
        await others.wait()
    assert isinstance(process, int)
    return process


@pytest.mark.parametrize("pool_size", [1, 3])
async def test_prepared_reads_use_the_connections_of_other_reads_and_give_them_back(
    database_url: str, pool_size: int
) -> None:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=pool_size)) as db:
        process = await _server_process(db, asyncio.Barrier(1))
        for _ in range(3):
            assert await _prepared(db) == process
        with pytest.raises(asyncpg.DivisionByZeroError):
            await _prepared(db, "SELECT 1 / 0")
        late = asyncio.ensure_future(_prepared(db, "SELECT pg_sleep(30)"))
        await _until_one_sleeps(database_url)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert await _prepared(db) == process
        assert await _server_process(db, asyncio.Barrier(1)) == process


async def test_connection_that_stays_with_prepared_reads_is_missed_by_nobody(database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        process = await _prepared(db)
        together = asyncio.Barrier(2)
        assert process in await asyncio.gather(*(_server_process(db, together) for _ in range(2)))
        process = await _prepared(db)
        async with db.transaction() as writing:
            assert await writing.scalar(text("SELECT pg_backend_pid()")) == process
            assert await _prepared(db) != process
            # Now all are out, and the second has to wait for what the first gives back.
            assert len(set(await asyncio.gather(_prepared(db), _prepared(db)))) == 1


async def test_connection_that_has_rested_with_prepared_reads_is_asked_whether_it_is_there(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        process = await _prepared(db)
        asked: list[Any] = []

        def note_ping(_: Any, connection: Any) -> bool:
            asked.append(connection)
            return True

        monkeypatch.setattr(PGDialect_asyncpg, "do_ping", note_ping)
        for take in (lambda: _server_process(db, asyncio.Barrier(1)), lambda: _prepared(db)):
            assert await _prepared(db) == process
            asked.clear()
            await asyncio.sleep(RESTED_S)
            assert await take() == process
            assert len(asked) == 1


async def test_prepared_reads_get_another_connection_in_place_of_one_that_was_lost(
    database_url: str, postgres_server: PostgresServer | ContainerPostgres
) -> None:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        lost = await _prepared(db)
        terminated = asyncio.ensure_future(_prepared(db, "SELECT pg_sleep(30)"))
        await _until_one_sleeps(database_url)
        name = database_url.rpartition("/")[2]
        postgres_server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError)):
            await terminated
        assert await _prepared(db) != lost


async def _until_one_sleeps(url: str) -> None:
    looking = await asyncpg.connect(asyncpg_url(url))
    try:
        await eventually(lambda: looking.fetchval(_SLEEPING))
    finally:
        await looking.close()


async def _prepared(db: Database, statement: str = "SELECT pg_backend_pid()") -> Any:
    async with db.read_prepared() as connection:
        ((value,),) = await connection.fetch(statement)
    return value


async def test_a_connection_that_was_given_back_in_a_transaction_of_the_driver_is_replaced(database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=1)) as db:
        async with db.read_prepared() as connection:
            process = await _process_of(connection)
            await connection.fetch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        assert await _prepared(db) != process
        async with db.transaction() as writing:
            await writing.execute(text("CREATE TABLE written (id int)"))
        assert await _prepared(db, "SELECT count(*) FROM pg_class WHERE relname = 'written'") == 1


async def _process_of(connection: Any) -> Any:
    ((process,),) = await connection.fetch("SELECT pg_backend_pid()")
    return process


async def test_a_kept_connection_goes_back_to_somebody_who_waits_for_it_already(database_url: str) -> None:
    """One that began to wait just before it was kept asks nobody for it any more."""
    engine = create_async_engine(database_url, pool_size=2, max_overflow=0, pool_timeout=60)
    kept = KeptConnection(engine, size=2)
    kept.give_back(await kept.take())
    async with engine.connect(), asyncio.timeout(30), engine.connect():
        pass
    await engine.dispose()
