"""Totals that are kept up to date: what triggers add up to is what there is, in every snapshot and whatever happens.

Several connections change experiments and trials in transactions that overlap and roll back, while the scheduler puts
numbers together.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from services.scheduler.row_counts import MANY, RowCounts
from tests.harness.counted_rows import DIFFERENCES, LONG
from tests.harness.seeds import chance

WRITERS = 4
STEPS = 60
STORED_LABELS = [[], ["a"], ["b", "a", "a"], ["null", None, 1], ["", ["b"]], "a", {"a": "b"}, None, [LONG]]
ONE = "(SELECT id FROM {0} ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED)"
SOME_CONFIG = f"""
coalesce((SELECT jsonb_build_object('labels', labels) FROM jsonb_array_elements('{json.dumps(STORED_LABELS)}') AS labels
           WHERE length(job_id) > 0 AND random() < 0.9 ORDER BY random() LIMIT 1), '{{}}')
"""
SOME_SPACE = """
jsonb_build_object('hyperparameters', jsonb_build_object('width', '{"type": "const", "val": 64}'::jsonb,
                   'lr', jsonb_build_object('type', 'log', 'minval', n - 3, 'maxval', n)))
"""
MANY_VALUES = "(SELECT jsonb_object_agg('p' || n, n) FROM generate_series(1, 300) n)"
SOME_VALUES = f"""
(ARRAY['{{"lr": 0.5, "optimizer": {{"name": "adam", "beta": 1e-3}}}}', '{{"lr": 0.50, "optimizer": null}}', '{{}}',
       '[1]', {MANY_VALUES}]::jsonb[])[1 + floor(5 * random())::int]
"""
SOME_SUMMARY = """
(ARRAY['{"validation_metrics": {"loss": {"min": 0.1, "max": "NaN", "last": 0.30}, "day": {"last": "2024-01-01"}}}',
       '{"validation_metrics": {"loss": {"min": 0.2}}, "avg_metrics": {"loss": {"min": 1}}}', '{}']::jsonb[])
[1 + floor(3 * random())::int]
"""
WIDE_SUMMARY, FULL_SUMMARY = (
    f"""
    jsonb_build_object('validation_metrics',
      (SELECT jsonb_object_agg('layer.' || n, '{{"min": 1, "max": 2, "mean": 1, "last": 2}}'::jsonb)
         FROM generate_series(1, {names}) n))
    """
    for names in (5000, 50)
)
NEW_EXPERIMENTS = f"""
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, archived, start_time)
SELECT (ARRAY['ACTIVE', 'PAUSED'])[1 + n % 2], {SOME_CONFIG} || {SOME_SPACE}, '', 1 + n % 2, 1, job_id, n = 5, now()
FROM (SELECT n, gen_random_uuid()::text AS job_id FROM generate_series(1, 5) n) AS ids
"""
NEW_TRIALS = f"""
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, hparams, summary_metrics)
SELECT id, project_id, 1, gen_random_uuid()::text, 'ACTIVE', now(), {SOME_VALUES}, {SOME_SUMMARY}
FROM experiments, generate_series(1, 3) WHERE id = {ONE.format("experiments")}
"""
STATEMENTS = [
    NEW_EXPERIMENTS,
    NEW_TRIALS,
    NEW_TRIALS,
    f"UPDATE experiments SET state = 'COMPLETED', progress = 1 WHERE id = {ONE.format('experiments')}",
    f"UPDATE experiments SET archived = NOT archived WHERE id = {ONE.format('experiments')}",
    f"UPDATE experiments SET config = {SOME_CONFIG} WHERE id = {ONE.format('experiments')}",
    f"UPDATE experiments SET config = {SOME_CONFIG}, archived = NOT archived WHERE id = {ONE.format('experiments')}",
    f"UPDATE experiments SET owner_id = 3 - owner_id WHERE id = {ONE.format('experiments')}",
    f"UPDATE experiments SET progress = 0.5 WHERE id = {ONE.format('experiments')}",
    f"UPDATE experiments SET project_id = 1 + project_id % 2 WHERE id = {ONE.format('experiments')}",
    f"UPDATE trials SET state = 'ERROR', end_time = now() WHERE id = {ONE.format('trials')}",
    f"UPDATE trials SET project_id = 1 + project_id % 2, archived = true WHERE id = {ONE.format('trials')}",
    f"UPDATE trials SET hparams = {SOME_VALUES} WHERE id = {ONE.format('trials')}",
    f"UPDATE trials SET summary_metrics = {SOME_SUMMARY} WHERE id = {ONE.format('trials')}",
    f"UPDATE trials SET summary_metrics = {SOME_SUMMARY}, end_time = now() WHERE id = {ONE.format('trials')}",
    f"UPDATE trials SET end_time = NULL WHERE id = {ONE.format('trials')}",
    f"""UPDATE experiments AS e SET best_trial_id = (SELECT max(id) FROM trials WHERE experiment_id = e.id)
         WHERE id = {ONE.format("experiments")}""",
    f"DELETE FROM trials WHERE id = {ONE.format('trials')}",
    f"DELETE FROM experiments WHERE id = {ONE.format('experiments')}",
    f"""WITH moved AS (UPDATE experiments SET archived = true WHERE id = {ONE.format("experiments")} RETURNING id)
        UPDATE trials SET archived = true WHERE experiment_id IN (SELECT id FROM moved)""",
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=4)) as db:
        yield db


@pytest_asyncio.fixture(loop_scope="module")
async def connections(database_url: str) -> AsyncIterator[list[asyncpg.Connection]]:
    """Writers, which wait for nobody's rows for long, and one that only looks."""
    opened = [await asyncpg.connect(asyncpg_url(database_url)) for _ in range(WRITERS + 1)]
    for each in opened[:WRITERS]:
        await each.execute("SET lock_timeout = '20ms'")
    await opened[-1].execute(
        "INSERT INTO projects (id, name, key, workspace_id, owner_id) VALUES (2, 'second', 'SEC', 1, 1)"
        " ON CONFLICT DO NOTHING"
    )
    # Rows that are put together come again behind all others, unless cleaning has made room before these.
    await opened[-1].execute("ALTER TABLE project_changes SET (autovacuum_enabled = false)")
    yield opened
    for each in opened:
        await each.close()


@pytest.mark.parametrize("history", range(8))
async def test_numbers_add_up_to_the_rows_in_every_snapshot(
    db: Database, connections: list[asyncpg.Connection], history: int
) -> None:
    random, (*writers, reader) = chance(), connections
    random.seed(random.random() + history)
    row_counts = RowCounts(db=db)
    open_ones: dict[int, Any] = {}
    changed = 0
    async with reader.transaction(isolation="repeatable_read", readonly=True):
        before = await reader.fetch("SELECT * FROM experiment_counts")
        for _ in range(STEPS):
            place = random.randrange(WRITERS)
            writer = writers[place]
            match random.random():
                case luck if luck < 0.1 and place in open_ones:
                    await open_ones.pop(place).commit()
                case luck if luck < 0.2 and place in open_ones:
                    await open_ones.pop(place).rollback()
                case luck if luck < 0.3 and place not in open_ones:
                    open_ones[place] = writer.transaction()
                    await open_ones[place].start()
                case luck if luck < 0.4:
                    many = random.choice((3, MANY))
                    await asyncio.gather(*(row_counts.put_together(many=many) for _ in range(random.choice((1, 2)))))
                case _:
                    changed += await _change(writer, random)
            assert await writer.fetch(DIFFERENCES) == [], "with what its own transaction has done"
            async with db.read() as connection:
                found = (await connection.exec_driver_sql(DIFFERENCES)).all()
            assert found == [], "with what is committed"
        assert await reader.fetch(DIFFERENCES) == [], "as it was before all of this"
        assert await reader.fetch("SELECT * FROM experiment_counts") == before
    for transaction in open_ones.values():
        await transaction.rollback()
    assert changed > STEPS / 4
    await row_counts.put_together()
    assert await reader.fetch(DIFFERENCES) == []
    assert await reader.fetchval(
        "SELECT count(*) = count(DISTINCT (project_id, owner_id, state, archived)) FROM experiment_counts"
    ), "one number of each group"
    assert await reader.fetchval(
        "SELECT count(*) = count(DISTINCT (label, project_id, owner_id, state, archived)) FROM label_counts"
    )
    await _settle(row_counts, reader)
    assert await reader.fetch(DIFFERENCES) == []


async def _change(writer: asyncpg.Connection, random: Random) -> bool:
    """Do something to a random row, part of it taken back at times; False where somebody else holds the row."""
    try:
        async with writer.transaction():
            await writer.execute(random.choice(STATEMENTS))
            if random.random() < 0.2:
                raise LookupError
    except LookupError:
        return True
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return False
    return True


async def test_what_nobody_has_put_together_for_long_is_taken_in_pieces(
    db: Database, connections: list[asyncpg.Connection]
) -> None:
    *_, driver = connections
    await RowCounts(db=db).put_together()
    of_each = "SELECT project_id, part, sum(number)::bigint FROM project_changes GROUP BY 1, 2 ORDER BY 1, 2"
    await driver.execute(
        "INSERT INTO project_changes (project_id, part, number) SELECT 1, n % 7, 1 FROM generate_series(1, 5000) n"
    )
    before = await driver.fetch(of_each)
    await RowCounts(db=db).put_together(many=100)
    assert await driver.fetch(of_each) == before
    assert await driver.fetchval("SELECT count(*) FROM project_changes") < 100


async def test_a_table_that_is_emptied_has_no_rows(db: Database, connections: list[asyncpg.Connection]) -> None:
    await connections[0].execute(NEW_EXPERIMENTS)
    await connections[0].execute("TRUNCATE experiments CASCADE")
    assert await connections[-1].fetch(DIFFERENCES) == []
    assert await connections[-1].fetchval("SELECT coalesce(sum(number), 0) FROM experiment_counts") == 0


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read"])
@pytest.mark.parametrize("change", ["INSERT", "UPDATE", "DELETE"])
async def test_who_writes_while_an_experiment_is_archived_is_counted(
    db: Database, connections: list[asyncpg.Connection], change: str, isolation: str
) -> None:
    """The one sees an experiment in sight, the other no trial that is not committed."""
    row_counts, (late, other, *_, reader) = RowCounts(db=db), connections
    await _settle(row_counts, reader)
    ident = await other.fetchval(
        "INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)"
        " VALUES ('COMPLETED', '{}', '', 1, 1, gen_random_uuid()::text, now()) RETURNING id"
    )
    insert = "INSERT INTO trials (experiment_id, project_id, state, start_time) VALUES ($1, 1, 'ERROR', now())"
    statement = {
        "INSERT": insert,
        "UPDATE": "UPDATE trials SET state = 'COMPLETED' WHERE experiment_id = $1",
        "DELETE": "DELETE FROM trials WHERE experiment_id = $1",
    }[change]
    await other.execute(insert, ident)
    transaction = late.transaction(isolation=isolation)
    await transaction.start()
    await late.fetchval("SELECT count(*) FROM experiments")  # from now on, one of them sees what there was
    if isolation == "read_committed":
        await late.execute(statement, ident)
    await other.execute("UPDATE experiments SET archived = true WHERE id = $1", ident)
    for _ in range(3):
        await row_counts.put_together()
    if isolation == "repeatable_read":
        await late.execute(statement, ident)
    assert await reader.fetch(DIFFERENCES) == []
    await transaction.commit()
    assert await reader.fetch(DIFFERENCES) == []
    await _settle(row_counts, reader)
    assert await reader.fetch(DIFFERENCES) == []


async def test_what_another_server_has_seen_is_seen_anew(db: Database, connections: list[asyncpg.Connection]) -> None:
    await connections[0].execute(
        "INSERT INTO archived_trial_changes (experiment_id, seen_by) VALUES (1, 1::bigint << 60)"
    )
    await _settle(RowCounts(db=db), connections[-1])


async def _settle(row_counts: RowCounts, reader: asyncpg.Connection) -> None:
    """Until all is counted: others on the same server, as its own cleaning, may be writing for a while."""
    async with asyncio.timeout(60):
        while await reader.fetchval("SELECT count(*) FROM archived_trial_changes"):
            await row_counts.put_together()


async def test_reports_add_nothing_to_what_is_counted(connections: list[asyncpg.Connection]) -> None:
    writer = connections[0]
    await writer.execute(NEW_EXPERIMENTS)
    await writer.execute(NEW_TRIALS)
    before = await writer.fetchval(
        "SELECT (SELECT count(*) FROM experiment_counts) + (SELECT count(*) FROM trial_counts)"
    )
    await writer.execute("UPDATE experiments SET progress = 0.7, state = state")
    await writer.execute("UPDATE trials SET total_batches = 7")
    after = await writer.fetchval(
        "SELECT (SELECT count(*) FROM experiment_counts) + (SELECT count(*) FROM trial_counts)"
    )
    assert after == before


async def test_no_more_values_of_a_run_are_looked_at_than_decide_that_it_has_very_many(
    connections: list[asyncpg.Connection],
) -> None:
    *_, driver = connections
    found = await driver.fetch(f"SELECT kind, is_loose FROM values_of_run({MANY_VALUES}, {WIDE_SUMMARY}, true)")
    assert len(found) == 2 * 201
    assert all(is_loose for _, is_loose in found)
    (few,) = await driver.fetch(f"SELECT count(*), bool_or(is_loose) FROM values_of_run('{{}}', {FULL_SUMMARY}, true)")
    assert tuple(few) == (200, False)
