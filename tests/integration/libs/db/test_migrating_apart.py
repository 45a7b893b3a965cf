"""A service that starts has its database migrated by another process, and keeps nothing of what that takes."""

from __future__ import annotations

import asyncio
import sys

import asyncpg
import pytest

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.migrate import provide_schema
from libs.db.schema.apart import MigrationFailed
from libs.db.schema.found import schema_of

_PROVIDE = """
import asyncio, sys
from libs.db.connecting.settings import DatabaseSettings
from libs.db.migrate import provide_schema
asyncio.run(provide_schema(DatabaseSettings(url=sys.argv[1])))
print("loaded", *sorted({"sqlalchemy", "alembic"} & set(sys.modules)))
"""

_CUT_OFF_WHO_WAITS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_locks
WHERE locktype = 'relation' AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def test_the_service_itself_loads_nothing_for_it(empty_database_url: str) -> None:
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PROVIDE, empty_database_url, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await service.communicate()
    assert (service.returncode, printed.splitlines()[-1]) == (0, b"loaded")
    assert not (await schema_of(empty_database_url)).is_outdated


async def test_many_services_may_start_at_once(empty_database_url: str) -> None:
    settings = DatabaseSettings(url=empty_database_url)
    await asyncio.gather(*(provide_schema(settings) for _ in range(4)))
    assert not (await schema_of(empty_database_url)).is_outdated


async def test_a_migration_that_fails_ends_the_start(
    empty_database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    connection = await asyncpg.connect(asyncpg_url(empty_database_url))
    await connection.execute("CREATE TABLE experiments (in_the_way int)")
    await connection.close()
    with pytest.raises(MigrationFailed, match="see the lines before"):
        await provide_schema(DatabaseSettings(url=empty_database_url))
    assert 'relation "experiments" already exists' in capfd.readouterr().err
    assert (await schema_of(empty_database_url)).found is None


async def test_a_process_that_loses_the_database_is_followed_by_another(
    empty_database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    connection = await asyncpg.connect(asyncpg_url(empty_database_url))
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("LOCK TABLE pg_catalog.pg_type IN SHARE MODE")  # nobody can create a table
    providing = asyncio.create_task(provide_schema(DatabaseSettings(url=empty_database_url)))
    while not await connection.fetchval(_CUT_OFF_WHO_WAITS):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await transaction.rollback()
    await connection.close()
    await providing
    assert "the database was lost" in capfd.readouterr().err
    assert not (await schema_of(empty_database_url)).is_outdated
