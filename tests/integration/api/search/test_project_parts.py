"""What all experiments of a project have, read once and then followed: always what reading it anew says, and no parts
are read but those that have changed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import asyncpg
import msgspec
import pytest
import pytest_asyncio
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.labels import labels_in_use
from services.api.queries.project_parts import MOST_KEPT, Part, PartReader, ProjectParts
from services.api.queries.search.project_columns import experiment_columns, run_columns
from services.api.queries.search.project_values import metadata_values, metric_ranges
from services.scheduler.row_counts import RowCounts
from tests.bench.reading.statements import statements_of
from tests.harness.seeds import chance

STEPS: Final = 10
_SUMMARY: Final = """jsonb_build_object('validation_metrics', jsonb_build_object('m' || floor(random() * 6),
    jsonb_build_object('type', (ARRAY['number', 'string'])[1 + floor(random() * 2)::int], 'last', random(),
                       'min', random(), 'max', random(), 'mean', random())))"""
_HPARAMS: Final = "jsonb_build_object('h' || floor(random() * 5), floor(random() * 2)::int)"
_CONFIG: Final = """jsonb_build_object(
    'labels', jsonb_build_array('l' || floor(random() * 5), 'l' || floor(random() * 5)), 'hyperparameters',
    jsonb_build_object('c' || floor(random() * 5), jsonb_build_object('type', 'int')))"""
_FILL: Final = f"""
TRUNCATE experiments, trials, metrics, metric_marks CASCADE;
INSERT INTO workspaces (id, name, owner_id) VALUES (9, 'others', 1) ON CONFLICT DO NOTHING;
INSERT INTO projects (id, workspace_id, name, key, owner_id) VALUES (9, 9, 'other', 'OTHER', 1) ON CONFLICT DO NOTHING;
INSERT INTO experiments (id, state, config, original_config, owner_id, project_id, job_id, start_time)
OVERRIDING SYSTEM VALUE
SELECT n * 100, 'ACTIVE', {_CONFIG}, '', 1, CASE WHEN n % 2 = 0 THEN 1 ELSE 9 END, n::text, now()
FROM generate_series(1, 30) n;
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, hparams, summary_metrics,
                    searcher_metric_value)
SELECT id, project_id, n, n::text, 'ACTIVE', now(), {_HPARAMS}, {_SUMMARY}, random()
FROM experiments, generate_series(1, 2) n;
UPDATE experiments SET best_trial_id = (SELECT max(id) FROM trials WHERE experiment_id = experiments.id)
"""
_E: Final = "(SELECT id FROM experiments ORDER BY random() LIMIT 1)"
_T: Final = "(SELECT id FROM trials ORDER BY random() LIMIT 1)"
CHANGES: Final = (
    f"UPDATE experiments SET config = {_CONFIG} WHERE id = {_E}",
    f"UPDATE experiments SET best_trial_id = (SELECT min(id) FROM trials WHERE experiment_id = experiments.id)"
    f" WHERE id = {_E}",
    f"""WITH moved AS (UPDATE experiments SET project_id = 10 - project_id WHERE id = {_E} RETURNING id, project_id)
        UPDATE trials t SET project_id = moved.project_id FROM moved WHERE moved.id = t.experiment_id""",
    f"UPDATE trials SET summary_metrics = {_SUMMARY} WHERE id = {_T}",
    f"UPDATE trials SET searcher_metric_value = random() WHERE id = {_T}",
    f"UPDATE trials SET hparams = {_HPARAMS} WHERE id = {_T}",
    f"UPDATE trials SET metadata = {_HPARAMS} WHERE id = {_T}",
    f"UPDATE trials SET metadata = jsonb_build_object('note', 't' || floor(random() * 9)) WHERE id = {_T}",
    f"DELETE FROM trials WHERE id = {_T}",
    f"DELETE FROM experiments WHERE id = {_E}",
    f"""WITH made AS (INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
          VALUES ('ACTIVE', {_CONFIG}, '', 1, 1, gen_random_uuid()::text, now()) RETURNING id)
        INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, hparams,
                            summary_metrics)
        SELECT id, 1, 1, 'x', 'ACTIVE', now(), {_HPARAMS}, {_SUMMARY} FROM made""",
)
# As reports are appended to a trial with its summary in rows.
APPENDED: Final = f"""
WITH one AS (UPDATE trials SET summary_in_rows = true WHERE id = {_T} RETURNING id),
     marked AS (INSERT INTO metric_marks (trial_id) SELECT id FROM one ON CONFLICT DO NOTHING),
     grouped AS (INSERT INTO metric_groups (trial_id, metric_group, run_id) SELECT id, 'validation', 1 FROM one
                 ON CONFLICT DO NOTHING)
SELECT id FROM one
"""
REPORTED: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT $1, 1, 'validation', 'VALIDATION', $2, now(),
       jsonb_build_object('validation_metrics', jsonb_build_object('m' || floor(random() * 9), random() * 9))
"""


@pytest_asyncio.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=4)) as db:
        yield db


@pytest_asyncio.fixture
async def writers(database_url: str) -> AsyncIterator[list[asyncpg.Connection]]:
    opened = [await asyncpg.connect(asyncpg_url(database_url)) for _ in range(2)]
    await opened[0].execute(_FILL)
    await opened[0].execute("SELECT setval(pg_get_serial_sequence('experiments', 'id'), 3000)")
    yield opened
    for each in opened:
        await each.close()


class _OfOneWorkspace(UserRights):
    """May see the experiments of workspace 1."""

    def workspaces_where(self, action: Action) -> list[int] | None:
        return [1]


EVERYTHING: Final = UserRights(Principal(user_id=UserId(1), username="admin"))
LITTLE: Final = _OfOneWorkspace(Principal(user_id=UserId(2), username="determined"))


async def _answers(db: Database, parts: ProjectParts) -> list[bytes]:
    answers: list[Any] = []
    async with db.read() as connection:
        for project in (1, 9):
            answers += [
                await experiment_columns(connection, project, parts),
                await run_columns(connection, project, parts),
                await metric_ranges(connection, project, parts),
                await metadata_values(connection, project, "note", parts),
            ]
        for project in (0, 1, 9):
            answers += [
                await labels_in_use(connection, project, parts, rights=rights) for rights in (EVERYTHING, LITTLE)
            ]
    return [msgspec.json.encode(answer) for answer in answers]


@pytest.mark.timeout(300)
async def test_what_is_followed_is_what_is_read_anew(db: Database, writers: list[asyncpg.Connection]) -> None:
    parts, settler, marked = ProjectParts(), RowCounts(db=db), set[int]()
    first, second = writers
    random = chance()
    for step in range(STEPS):
        one, other = random.choice(CHANGES), random.choice(CHANGES)
        # Two transactions overlap, and the one that began last ends first; one of them is taken back now and then.
        transaction = second.transaction()
        await transaction.start()
        await second.execute("SET LOCAL lock_timeout = '5s'")
        await second.execute("SET LOCAL resolute.summary_writer = 'rows'")
        await second.execute(one)
        await first.execute("SET lock_timeout = '50ms'; SET resolute.summary_writer = 'rows'")
        with suppress(asyncpg.LockNotAvailableError, asyncpg.ForeignKeyViolationError):  # it is about the same row
            await first.execute(other)
        assert await _answers(db, parts) == await _answers(db, ProjectParts()), (step, one, other)
        await (transaction.commit() if random.random() < 0.8 else transaction.rollback())
        await _answers(db, parts)
        if step % 3 == 0 and (trial := await first.fetchval(APPENDED)) is not None:
            marked.add(trial)
        for trial in marked:
            await first.execute(REPORTED, trial, step)
        if step % 4 == 0:
            await settler.put_together()
        assert await _answers(db, parts) == await _answers(db, ProjectParts()), (step, one, other)


async def _read(db: Database, parts: ProjectParts, **how: Any) -> list[int]:
    """The first ids of the parts of project 1 that were read and not known."""
    read: list[int] = []

    async def note(_: AsyncConnection, part: Part) -> list[str]:
        assert part.project_id == 1
        read.append(part.first)
        return []

    async with db.read() as connection:
        await parts.of_project(connection, 1, PartReader[list[str]]("test", note, list, list.extend, **how))
    return read


async def test_only_parts_that_have_changed_are_read(db: Database, writers: list[asyncpg.Connection]) -> None:
    driver, parts = writers[0], ProjectParts()
    assert await _read(db, parts) == [0, 512, 1024, 1536, 2048, 2560]
    assert await _read(db, parts) == []
    trial = await driver.fetchval("SELECT max(id) FROM trials WHERE experiment_id = 600")
    for change in ("summary_metrics = '{}'", "hparams = '{\"a\": 1}'", "metadata = '{}'", "searcher_metric_value = 2"):
        await driver.execute(f"UPDATE trials SET {change} WHERE id = {trial}")
        assert await _read(db, parts) == [512], change
    for change in ("config = '{}'", "best_trial_id = NULL", "project_id = 9", "project_id = 1"):
        await driver.execute(f"UPDATE experiments SET {change} WHERE id = 1200")
        assert await _read(db, parts) == [1024], change
    for what in ("trials", "experiments"):
        await driver.execute(f"DELETE FROM {what} WHERE {'experiment_' if what == 'trials' else ''}id = 3000")
        assert await _read(db, parts) == [2560], what
    await driver.execute("UPDATE experiments SET state = 'COMPLETED', progress = 1, notes = 'x', archived = true")
    await driver.execute(
        "UPDATE trials SET state = 'COMPLETED', total_batches = 9, restarts = 1, last_activity = now()"
    )
    assert await _read(db, parts) == []
    await RowCounts(db=db).put_together()
    assert await _read(db, parts) == []


async def test_who_asks_again_makes_nobody_read_rows(database_url: str, writers: list[asyncpg.Connection]) -> None:
    assert writers
    parts = ProjectParts()
    asked = [each.sql for each in await statements_of(asyncpg_url(database_url), lambda db: _answers(db, parts))]
    read = [sql for sql in asked if "FROM" in sql and "project_changes" not in sql]
    # What is left puts the labels in order, and asks which projects are seen.
    assert {"experiments" in sql or "trials" in sql for sql in read} == {False}, read
    assert sum("project_changes" in sql for sql in asked) == 2 * (2 + 3 + 1 + 1) + 2 * 3
    assert not [sql for sql in asked if "GROUP BY part" in sql], "nobody asks about each part"


async def test_parts_are_put_together_where_one_has_changed(db: Database, writers: list[asyncpg.Connection]) -> None:
    driver, parts, added = writers[0], ProjectParts(), list[str]()

    def add(names: list[str], more: list[str]) -> None:
        added.extend(more)
        names.extend(more)

    async def value(_: AsyncConnection, part: Part) -> list[str]:
        return [str(part.first)]

    async def read() -> list[str]:
        added.clear()
        async with db.read() as connection:
            return await parts.of_project(
                connection, 1, PartReader[list[str]]("test", value, list, add, of_reports=True)
            )

    everything = ["0", "512", "1024", "1536", "2048", "2560"]
    assert (await read(), added) == (everything, everything)
    assert (await read(), added) == (everything, [])
    await driver.execute("UPDATE experiments SET config = '{}' WHERE id = 1200")
    assert (await read(), added) == (everything, everything)
    trial = await driver.fetchval("UPDATE trials SET summary_in_rows = true WHERE experiment_id = 600 RETURNING id")
    await driver.execute("INSERT INTO metric_marks (trial_id) VALUES ($1)", trial)
    others = [first for first in everything if first != "512"]
    assert (await read(), added) == ([*others, "512"], [*others, *others, "512"])
    assert (await read(), added) == ([*others, "512"], [*others, "512"]), "the others stay together beside a mark"
    await driver.execute("DELETE FROM metric_marks")
    assert (await read(), added) == (everything, everything)


async def test_parts_with_reports_that_are_in_no_column_are_read_each_time(
    db: Database, writers: list[asyncpg.Connection]
) -> None:
    driver, parts = writers[0], ProjectParts()
    trial = await driver.fetchval("UPDATE trials SET summary_in_rows = true WHERE experiment_id = 600 RETURNING id")
    await _read(db, parts)
    await driver.execute("INSERT INTO metric_marks (trial_id) VALUES ($1)", trial)
    assert [await _read(db, parts, of_reports=True) for _ in range(2)] == [[512], [512]]
    assert await _read(db, parts) == []
    async with driver.transaction():
        await driver.execute("SELECT set_config('resolute.summary_writer', 'rows', true)")
        await driver.execute("UPDATE trials SET summary_metrics = $2::jsonb WHERE id = $1", trial, json.dumps({}))
        await driver.execute("DELETE FROM metric_marks WHERE trial_id = $1", trial)
    assert [await _read(db, parts, of_reports=True) for _ in range(2)] == [[512], []]


async def test_no_more_than_so_many_bytes_are_kept(db: Database, writers: list[asyncpg.Connection]) -> None:
    parts, most = ProjectParts(), MOST_KEPT // 10
    (first, *others) = await _read(db, ProjectParts())

    async def read(what: str, length: int) -> list[int]:
        """The first ids of the parts that were read; one name each, of the first so long."""
        firsts: list[int] = []

        async def value(_: AsyncConnection, part: Part) -> list[str]:
            firsts.append(part.first)
            return ["x" * (length if part.first == first else 1)]

        async with db.read() as connection:
            await parts.of_project(connection, 1, PartReader[list[str]](what, value, list, list.extend))
        return firsts

    assert writers
    assert await read("large", most) == [first, *others]
    assert await read("large", most) == [first], "the others are kept"
    for n in range(11):
        await read(f"many {n}", most - 1000)
    assert await read("large", most) == [first, *others], "those that nobody has asked for the longest have gone"
