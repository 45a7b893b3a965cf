"""Searches for a text in labels find what a look at each configuration finds, and look at few of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search.by_index import label_index
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.runs.searches import search_runs
from services.api.wire.search.searches import SearchRequest
from tests.bench.reading.statements import statements_of
from tests.scenarios.search.nodes import field, group

READER = UserRights(Principal(user_id=UserId(2), username="determined"))
LABELS = ["team3", "Team 30", "a, b", 'said "no"', "back\\slash", "new\nline", "ÄRGER", "ärger", "100%", "1000", "a_b",
          "a/b", "[x]", "null", " spaced ", "x" * 100]  # fmt: skip
TEXTS = ["team3", "TEAM", "m 3", "team3x", "a, b", ", ", '"', "no", "back\\", "\\n", "\n", "ärg", "100%", "0%", "a_b",
         "a/b", "x]", "x", "nul", " spaced", "spaced", "b", "[]", "x" * 90, "e", 3, ""]  # fmt: skip
FILL = """
INSERT INTO projects (id, name, key, workspace_id, owner_id) VALUES (2, 'second', 'SEC', 1, 1);
INSERT INTO experiments (id, state, config, original_config, owner_id, project_id, job_id, archived, start_time)
SELECT n, CASE n % 23 WHEN 0 THEN 'DELETING' ELSE 'COMPLETED' END,
       jsonb_build_object('name', 'e') || CASE n % 5 WHEN 0 THEN '{}' ELSE jsonb_build_object('labels',
           CASE n % 7 WHEN 0 THEN '[]' ELSE jsonb_build_array(labels -> n % 16, labels -> n * 3 % 16) END) END,
       '', 1, 1 + (n % 17 = 0)::int, 'job ' || n, n % 13 = 0, now()
  FROM generate_series(1, 300) n, (SELECT $1::jsonb) AS s (labels)
"""
RUNS = """
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, archived, start_time, end_time)
SELECT e.id, e.project_id, e.id * 2 + n, n::text, 'COMPLETED', e.id % 11 = 0, now(), now()
  FROM experiments e, generate_series(0, 1) n
"""
PLAIN = """
SELECT id FROM experiments WHERE jsonb_extract_path_text(config, 'labels') ILIKE $1 ESCAPE '!'
   AND project_id = 1 AND NOT archived AND state <> 'DELETING' ORDER BY id DESC
"""
PLAIN_RUNS = """
SELECT t.id FROM trials t JOIN experiments e ON e.id = t.experiment_id
 WHERE jsonb_extract_path_text(e.config, 'labels') ILIKE $1 ESCAPE '!'
   AND t.project_id = 1 AND NOT e.archived AND NOT t.archived AND e.state <> 'DELETING' ORDER BY t.id DESC
"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute(FILL.split(";", maxsplit=1)[0])
    await connection.execute(FILL.split(";")[1], json.dumps(LABELS))
    await connection.execute(RUNS)
    yield connection
    await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def db(database_url: str, driver: asyncpg.Connection) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        yield db


def request(text: Any, *, limit: int = 500) -> SearchRequest:
    node = group("and", field("tags", "contains", text, "EXPERIMENT", "TEXT"))
    wanted = json.dumps({"filterGroup": node, "showArchived": False})
    return SearchRequest(project_id=1, limit=limit, sort="id=desc", filter=wanted)


async def found(db: Database, text: Any, *, of_runs: bool, limit: int = 500) -> tuple[list[int], int]:
    if of_runs:
        runs, pagination = await search_runs(db, request(text, limit=limit), rights=READER, parts=ProjectParts())
        return [run.id for run in runs], pagination.total
    async with db.read() as connection:
        asked = request(text, limit=limit)
        shown, pagination = await search_experiments(
            connection, asked, rights=READER, now=datetime.now(UTC), parts=ProjectParts()
        )
    return [one.experiment.id for one in shown], pagination.total


@pytest.mark.parametrize("of_runs", [False, True])
async def test_a_text_is_found_wherever_it_is_in_the_labels(
    db: Database, driver: asyncpg.Connection, of_runs: bool
) -> None:
    some = 0
    for text in TEXTS:
        pattern = "".join(f"!{letter}" if letter in "%_!" else letter for letter in str(text))
        rows = await driver.fetch(PLAIN_RUNS if of_runs else PLAIN, f"%{pattern}%")
        expected = [ident for (ident,) in rows]
        assert await found(db, text, of_runs=of_runs) == (expected, len(expected)), text
        assert await found(db, text, of_runs=of_runs, limit=3) == (expected[:3], len(expected)), text
        some += bool(expected)
    assert some > len(TEXTS) / 2


@pytest.mark.parametrize(("text", "is_known"), [("team3", True), ("team", False), ("none", True)])
async def test_no_configuration_is_looked_into(db: Database, database_url: str, text: str, is_known: bool) -> None:
    async def read(db: Database) -> object:
        return await found(db, text, of_runs=False)

    looked_into = [each for each in await statements_of(asyncpg_url(database_url), read) if "ILIKE" in each.sql]
    of_experiments = [each.sql for each in looked_into if "FROM experiments" in each.sql]
    assert (not of_experiments) == is_known, of_experiments


async def test_where_labels_are_too_many_or_too_long_each_experiment_is_looked_at(
    db: Database, driver: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await found(db, "team3", of_runs=False)
    monkeypatch.setattr(label_index, "MOST_LABELS", 3)
    assert await found(db, "team3", of_runs=False) == expected
    monkeypatch.undo()
    long = "begin" + "ü" * 400 + "end"
    await driver.execute(
        "UPDATE experiments SET config = config || $1::jsonb WHERE id = 1", json.dumps({"labels": [long]})
    )
    assert await found(db, "end", of_runs=False) == ([1], 1)
