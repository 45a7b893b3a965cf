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
from tests.harness.changing_project import APPENDED, CHANGES, FILL, REPORTED
from tests.harness.seeds import chance

STEPS: Final = 10


@pytest_asyncio.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=4)) as db:
        yield db


@pytest_asyncio.fixture
async def writers(database_url: str) -> AsyncIterator[list[asyncpg.Connection]]:
    opened = [await asyncpg.connect(asyncpg_url(database_url)) for _ in range(2)]
    await opened[0].execute(FILL)
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
    for what, hidden in (
        ("experiments", "archived = true"),
        ("experiments", "state = 'DELETING'"),
        ("trials", "archived = true"),
    ):
        place = "id = 600" if what == "experiments" else f"id = {trial}"
        await driver.execute(f"UPDATE {what} SET {hidden} WHERE {place}")
        assert await _read(db, parts) == [512], (what, hidden)
    await driver.execute("UPDATE experiments SET state = 'COMPLETED', progress = 1, notes = 'x' WHERE id <> 600")
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
