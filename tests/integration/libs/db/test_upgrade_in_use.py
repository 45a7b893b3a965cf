"""A database is upgraded while services of the release before, readers and backups use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import connect_database
from libs.db.migrate import provide_schema, upgrade
from libs.db.schema.apart import MigrationFailed
from libs.db.schema.found import FORMER_LOCK, MIGRATION_LOCK, schema_of
from services.scheduler.row_counts import RowCounts
from tests.harness.counted_rows import DIFFERENCES
from tests.harness.seeds import chance

RELEASED: Final = "0008"
PATIENCE_S: Final = 60.0
OBJECTS: Final = 4
ROWS: Final = """
INSERT INTO experiments (id, state, config, original_config, owner_id, project_id, job_id, archived, start_time)
SELECT n, 'ACTIVE', jsonb_build_object('labels', ARRAY['a', (ARRAY['b', 'null', '1'])[1 + n % 3]], 'hyperparameters',
         jsonb_build_object('lr', jsonb_build_object('type', 'const', 'val', n))), '', 1, 1, n::text,
       n % 5 = 0, now() FROM generate_series(1, 3000) n;
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, hparams, summary_metrics)
SELECT id, project_id, n, n::text, 'ACTIVE', now(), jsonb_build_object('lr', n, 'optimizer', 'adam'),
       '{"validation_metrics": {"loss": {"min": 0.1}}}' FROM experiments, generate_series(1, 3) n;
UPDATE experiments SET best_trial_id = id
"""
EXPERIMENT_LOCKED: Final = "SELECT id FROM experiments WHERE id = $1 FOR UPDATE"
TRIALS_LOCKED: Final = "SELECT id FROM trials WHERE experiment_id = $1 ORDER BY id FOR NO KEY UPDATE"
EXPERIMENT_WRITTEN: Final = "UPDATE experiments SET progress = random() WHERE id = $1"
TRIALS_WRITTEN: Final = "UPDATE trials SET total_batches = total_batches + 1 WHERE experiment_id = $1"
ARCHIVED: Final = "UPDATE experiments SET archived = NOT archived WHERE id = $1"
LABELLED: Final = """UPDATE experiments SET config = '{"labels": ["b", "1"]}' WHERE id = $1"""
TRIALS_ENDED: Final = "UPDATE trials SET state = 'COMPLETED', end_time = now() WHERE experiment_id = $1"
LABELLED_BY_NOW: Final = "SELECT count(DISTINCT experiment_id) FROM labelled_experiments"
VALUES_BY_NOW: Final = "SELECT count(*) FROM run_texts"
ORDERS: Final = (
    # Of actions on experiments and trials.
    (EXPERIMENT_LOCKED, TRIALS_LOCKED, TRIALS_WRITTEN, EXPERIMENT_WRITTEN),
    (EXPERIMENT_LOCKED, EXPERIMENT_WRITTEN, TRIALS_LOCKED, TRIALS_WRITTEN),
    # Of reports of metrics.
    (TRIALS_LOCKED, TRIALS_WRITTEN, EXPERIMENT_WRITTEN),
    # Of what is counted.
    (EXPERIMENT_LOCKED, ARCHIVED, LABELLED, TRIALS_ENDED),
)
WAITS: Final = """
SELECT count(*) > 0 FROM pg_locks WHERE relation = $1::text::regclass AND NOT granted
"""


@pytest_asyncio.fixture
async def released_url(empty_database_url: str) -> str:
    """A database of the release before, with experiments that have trials."""
    await upgrade(empty_database_url, to=RELEASED)
    async with _connected(empty_database_url) as connection:
        await connection.execute(ROWS)
    return empty_database_url


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        yield connection
    finally:
        await connection.close()


async def _within(what: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(what, PATIENCE_S)


async def _until_somebody_waits(connection: Any, table: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await connection.fetchval(WAITS, table):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def _write(url: str, order: tuple[str, ...], ids: range, over: asyncio.Event) -> int:
    """Transactions one after the other; those of one order never wait for one another in a circle by themselves."""
    written, random = 0, chance()
    async with _connected(url) as connection:
        while not over.is_set():
            one = random.choice(ids)
            async with connection.transaction():
                for statement in order:
                    await connection.execute(statement, one)
                    await asyncio.sleep(0.002)
            written += 1
    return written


async def _read(url: str, over: asyncio.Event) -> int:
    read = 0
    async with _connected(url) as connection:
        while not over.is_set():
            await _within(connection.fetchval("SELECT count(*) FROM trials JOIN experiments e ON e.id = experiment_id"))
            read += 1
    return read


async def test_those_who_write_and_read_go_on(released_url: str) -> None:
    over = asyncio.Event()
    async with asyncio.TaskGroup() as everybody:
        writers = [
            everybody.create_task(_write(released_url, order, range(1 + place, 3000, len(ORDERS))[:OBJECTS], over))
            for place, order in enumerate(ORDERS)
            for _ in range(2)
        ]
        reader = everybody.create_task(_read(released_url, over))
        await provide_schema(DatabaseSettings(url=released_url))
        over.set()
    assert not (await schema_of(released_url)).is_outdated
    assert all(writer.result() for writer in writers)
    assert reader.result()
    async with _connected(released_url) as connection:
        assert await connection.fetch(DIFFERENCES) == []
        assert await connection.fetchval("SELECT sum(number) FROM label_counts WHERE label <> 'a'") >= 3000
        async with connect_database(DatabaseSettings(url=released_url, pool_size=2)) as db, asyncio.timeout(PATIENCE_S):
            while await connection.fetchval("SELECT EXISTS (SELECT FROM archived_trial_changes)"):
                await RowCounts(db=db).put_together()
        assert await connection.fetch(DIFFERENCES) == []
        assert await connection.fetchval("SELECT sum(number) FROM archived_trial_counts") > 0
        parts = [part for (part,) in await connection.fetch("SELECT DISTINCT part FROM project_changes ORDER BY part")]
        assert parts == list(range(3000 // 512 + 1))


@pytest.mark.parametrize(("before", "table"), [(RELEASED, "trials"), ("0012", "experiments")])
async def test_a_long_reader_keeps_no_other_reader_out(released_url: str, before: str, table: str) -> None:
    await upgrade(released_url, to=before)
    async with _connected(released_url) as backup, _connected(released_url) as other:
        transaction = backup.transaction(isolation="repeatable_read", readonly=True)
        await transaction.start()
        await backup.fetchval(f"SELECT count(*) FROM {table}")
        upgrading = asyncio.create_task(provide_schema(DatabaseSettings(url=released_url)))
        await _until_somebody_waits(other, table)
        assert await _within(other.fetchval(f"SELECT count(*) FROM {table}"))
        assert (await schema_of(released_url)).found == before
        await transaction.rollback()
        await _within(upgrading)
    assert not (await schema_of(released_url)).is_outdated


async def test_a_migration_in_the_middle_holds_the_lock_and_keeps_no_other_table(released_url: str) -> None:
    async with _connected(released_url) as writer, _connected(released_url) as other:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute(EXPERIMENT_WRITTEN, 1)
        upgrading = asyncio.create_task(provide_schema(DatabaseSettings(url=released_url)))
        await _until_somebody_waits(other, "experiments")
        assert (await schema_of(released_url)).found == "0010", "what was before is committed"
        assert not await other.fetchval("SELECT pg_try_advisory_lock($1)", MIGRATION_LOCK)
        assert await other.fetchval("SELECT pg_try_advisory_xact_lock($1)", FORMER_LOCK)
        await _within(other.execute("UPDATE projects SET name = 'another' WHERE id = 1"))
        await _within(writer.execute(TRIALS_WRITTEN, 1))
        await transaction.commit()
        await _within(upgrading)
    assert not (await schema_of(released_url)).is_outdated


async def test_labels_are_added_around_rows_that_somebody_holds(released_url: str) -> None:
    await upgrade(released_url, to="0022")
    async with _connected(released_url) as writer, _connected(released_url) as other:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute(EXPERIMENT_LOCKED, 7)
        upgrading = asyncio.create_task(provide_schema(DatabaseSettings(url=released_url)))
        async with asyncio.timeout(PATIENCE_S):
            while await other.fetchval(LABELLED_BY_NOW) < 999:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await _within(other.execute(LABELLED, 8))
        await _within(writer.execute(LABELLED, 7))
        await transaction.commit()
        await _within(upgrading)
        assert await other.fetch(DIFFERENCES) == []


async def test_values_are_added_around_rows_that_somebody_holds(released_url: str) -> None:
    await upgrade(released_url, to="0028")
    async with _connected(released_url) as writer, _connected(released_url) as other:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute(TRIALS_LOCKED, 7)
        upgrading = asyncio.create_task(provide_schema(DatabaseSettings(url=released_url)))
        async with asyncio.timeout(PATIENCE_S):
            while await other.fetchval(VALUES_BY_NOW) < 490:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await _within(other.execute(TRIALS_ENDED, 8))
        await _within(writer.execute(TRIALS_ENDED, 7))
        await transaction.commit()
        await _within(upgrading)
        assert await other.fetch(DIFFERENCES) == []


async def test_after_a_failure_the_next_try_goes_on(released_url: str) -> None:
    async with _connected(released_url) as connection:
        await connection.execute("CREATE TABLE experiment_counts (in_the_way int)")
        with pytest.raises(MigrationFailed):
            await provide_schema(DatabaseSettings(url=released_url))
        assert (await schema_of(released_url)).found == "0013"
        await connection.execute("DROP TABLE experiment_counts")
    await provide_schema(DatabaseSettings(url=released_url))
    assert not (await schema_of(released_url)).is_outdated
