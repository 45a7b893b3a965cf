"""Which of the connections of a pool a read gets."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from libs.db.engine import Database, DatabaseSettings, connect_database


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
