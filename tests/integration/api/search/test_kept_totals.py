"""Totals of searches that are kept are those that are counted, and are counted in parts that have changed alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.actions import MATRIX, Action
from services.api.access.rights.rights import Grants, UserRights
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search import experiments as of_experiments
from services.api.queries.search.runs import searches as of_runs
from services.api.wire.search.searches import SearchRequest
from services.scheduler.row_counts import RowCounts
from tests.bench.reading.statements import Statement, statements_of
from tests.harness.changing_project import APPENDED, CHANGES, FILL, REPORTED
from tests.harness.seeds import chance
from tests.scenarios.search.nodes import field, group

STEPS: Final = 5
HIDDEN: Final = (
    "UPDATE experiments SET archived = NOT archived WHERE id = (SELECT id FROM experiments ORDER BY random() LIMIT 1)",
    "UPDATE experiments SET state = 'DELETING' WHERE id = (SELECT id FROM experiments ORDER BY random() LIMIT 1)",
    "UPDATE trials SET archived = NOT archived WHERE id = (SELECT id FROM trials ORDER BY random() LIMIT 1)",
    "UPDATE trials SET end_time = now() WHERE id = (SELECT id FROM trials ORDER BY random() LIMIT 1)",
)
FILTERS: Final = {
    "a metric": field("validation.m1.min", "<", 0.7, "VALIDATIONS", "NUMBER"),
    "another metric": field("validation.m2.last", ">", 0.2, "VALIDATIONS", "NUMBER"),
    "a number of runs": field("hp.h1", ">=", 1, "RUN_HYPERPARAMETERS", "NUMBER"),
    "a text of runs": field("hp.h3", "=", "1", "RUN_HYPERPARAMETERS", "TEXT"),
    "a range of experiments": field("hp.c1", "<=", 5, "HYPERPARAMETERS", "NUMBER"),
    "a label": field("tags", "contains", "l3", "EXPERIMENT", "TEXT"),
    "some labels": field("tags", "contains", "l", "EXPERIMENT", "TEXT"),
}
EVERYTHING: Final = UserRights(Principal(user_id=UserId(1), username="admin"))
LITTLE: Final = UserRights(
    Principal(user_id=UserId(2), username="determined"),
    grants=Grants(by_workspace={1: frozenset(MATRIX[Action.VIEW_EXPERIMENT].needs)}),
)
"""May see the experiments of workspace 1, in which project 1 is."""
Asked = tuple[Any, str, int, bool]
"""Which search, by which filter, of which project, and whether archived ones are shown."""
ALL: Final[list[Asked]] = [
    (search, words, project, archived)
    for search in (of_experiments, of_runs)
    for words in FILTERS
    for project in (1, 9)
    for archived in (False, True)
    if not ("of runs" in words and search is of_experiments) and not ("of experiments" in words and search is of_runs)
]


@pytest_asyncio.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=4)) as db:
        yield db


@pytest_asyncio.fixture
async def writer(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(asyncpg_url(database_url))
    await opened.execute(FILL)
    await opened.execute("SELECT setval(pg_get_serial_sequence('experiments', 'id'), 3000)")
    await opened.execute("UPDATE experiments SET config = jsonb_set(config, '{hyperparameters,c1}',"
                         ' \'{"type": "int", "minval": 1, "maxval": 9}\') WHERE id % 3 = 0')  # fmt: skip
    yield opened
    await opened.close()


async def _total(db: Database, asked: Asked, parts: ProjectParts, *, rights: UserRights = EVERYTHING) -> int:
    search, words, project, archived = asked
    wanted = json.dumps({"filterGroup": group("and", FILTERS[words]), "showArchived": archived})
    request = SearchRequest(project_id=project, limit=1, sort="id=desc", filter=wanted)
    if search is of_runs:
        _, pagination = await of_runs.search_runs(db, request, rights=rights, parts=parts)
        return pagination.total
    async with db.read() as connection:
        _, pagination = await of_experiments.search_experiments(
            connection, request, rights=rights, now=datetime.now(UTC), parts=parts
        )
    return pagination.total


async def _nothing(*_: Any, **__: Any) -> None:
    """In place of the totals that are kept."""


async def _totals(db: Database, parts: ProjectParts) -> list[int]:
    return [await _total(db, asked, parts) for asked in ALL]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("few", [0, 1000])
async def test_what_is_kept_is_what_is_counted(
    db: Database, writer: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    parts, settler, marked, random = ProjectParts(), RowCounts(db=db), set[int](), chance()
    monkeypatch.setattr("services.api.queries.search.by_index.kept_totals.FEW", few)
    some = 0
    for step in range(STEPS):
        change = random.choice((*CHANGES, *HIDDEN))
        with suppress(asyncpg.ForeignKeyViolationError):
            await writer.execute("SET resolute.summary_writer = 'rows'")
            await writer.execute(change)
        if step % 4 == 1 and (trial := await writer.fetchval(APPENDED)) is not None:
            marked.add(trial)
        for trial in marked:
            await writer.execute(REPORTED, trial, step)
        if step % 4 == 3:
            await settler.put_together()
        kept = await _totals(db, parts)
        assert kept == await _totals(db, ProjectParts()), change
        with monkeypatch.context() as patched:
            for module in (of_experiments, of_runs):
                patched.setattr(module, "kept_total", _nothing)
            assert kept == await _totals(db, ProjectParts()), change
        some += sum(map(bool, kept))
    assert some > STEPS * len(ALL) / 2, "most filters let something through"


async def _asked(database_url: str, read: Callable[[Database], Any]) -> list[Statement]:
    return [
        each
        for each in await statements_of(asyncpg_url(database_url), read)
        if "count(" in each.sql and "page AS" not in each.sql
    ]


# Of experiments with one label, label_counts has the total.
@pytest.mark.parametrize(
    "asked",
    [each for each in ALL if each[2:] == (1, False) and each[:2] != (of_experiments, "a label")],
    ids=lambda asked: f"{asked[0].__name__.rpartition('.')[2]}, {asked[1]}",
)
async def test_only_parts_that_have_changed_are_counted(
    database_url: str, writer: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    monkeypatch.setattr("services.api.queries.search.by_index.kept_totals.FEW", -1)
    parts = ProjectParts()

    async def read(db: Database) -> object:
        return await _total(db, asked, parts)

    async def change_and_read(db: Database) -> object:
        await writer.execute("UPDATE experiments SET archived = NOT archived WHERE id = 600")
        return await read(db)

    assert await _asked(database_url, read) == []
    (counted,) = await _asked(database_url, change_and_read)
    assert 512 in counted.parameters, counted
    assert 1024 in counted.parameters, counted


async def test_who_may_not_see_a_project_finds_nothing(db: Database, writer: asyncpg.Connection) -> None:
    assert writer
    parts = ProjectParts()
    for asked in ALL:
        total = await _total(db, asked, parts)
        assert await _total(db, asked, parts, rights=LITTLE) == (total if asked[2] == 1 else 0), asked
