"""Totals of lists that nobody counts are those of the rows, whatever is asked for and however much has just changed.

So are pages that are read from the other end, which such a total allows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, select, text

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.tables.trials import trials
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries import page_rows
from services.api.queries.experiments.experiments import list_experiments
from services.api.queries.pagination import sql_page
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.runs.searches import search_runs
from services.api.wire.experiments.experiments import ExperimentSortBy, ExperimentState, GetExperimentsQuery
from services.api.wire.ordering import OrderBy
from services.api.wire.search.searches import SearchRequest
from services.scheduler.row_counts import RowCounts
from tests.harness.counted_rows import LABELS
from tests.harness.seeds import chance
from tests.scenarios.search.nodes import field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTIONS = 40
READER = UserRights(Principal(user_id=UserId(2), username="determined"))
FILL = f"""
INSERT INTO workspaces (id, name, owner_id, archived) VALUES (7, 'seven', 1, false);
INSERT INTO projects (id, workspace_id, name, key, owner_id, archived)
VALUES (7, 7, 'seven', 'SEV', 1, false), (8, 7, 'eight', 'EIG', 1, true);
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, archived, start_time, end_time)
SELECT (ARRAY['COMPLETED', 'ERROR', 'DELETING', 'ACTIVE'])[1 + n % 4],
       jsonb_build_object('name', 'run ' || n, 'labels', ('{json.dumps(LABELS)}'::jsonb) - (n % 6) - (n % 5) - (n % 4)),
       '', 1 + n % 2, (ARRAY[1, 7, 8])[1 + n % 3], 'some' || n, n % 7 < 2, now(), now() FROM generate_series(1, 300) n;
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, archived, start_time)
SELECT id, project_id, id, 'r' || n, (ARRAY['COMPLETED', 'ERROR', 'ACTIVE'])[1 + (id + n) % 3], (id + n) % 5 = 0, now()
FROM experiments, generate_series(1, 3) n
"""
CHANGES = (
    "UPDATE experiments SET archived = NOT archived WHERE id % 11 = :place",
    "UPDATE experiments SET state = 'COMPLETED', archived = true WHERE id % 13 = :place",
    "UPDATE experiments SET config = jsonb_set(config, '{labels}', '[\"b\", \"a\"]') WHERE id % 13 = :place",
    "UPDATE trials SET state = 'ERROR', archived = NOT archived WHERE id % 17 = :place",
    "UPDATE trials SET project_id = 1 WHERE experiment_id % 13 = :place",
    "DELETE FROM trials WHERE id % 37 = :place",
    "DELETE FROM experiments WHERE id % 41 = :place",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        async with db.transaction() as connection:
            for statement in FILL.split(";"):
                await connection.execute(text(statement))
        yield db


async def _change(db: Database, random: Random) -> None:
    async with db.transaction() as connection:
        for statement in random.sample(CHANGES, 3):
            await connection.execute(text(statement), {"place": random.randrange(11)})
    for _ in range(random.choice((0, 1, 2))):
        await RowCounts(db=db).put_together()


async def _counted(db: Database, of: str, conditions: list[str], **values: Any) -> int:
    async with db.read() as connection:
        where = " AND ".join(conditions) or "true"
        return int(await connection.scalar(text(f"SELECT count(*) FROM {of} WHERE {where}"), values) or 0)


async def test_experiments_of_labels(db: Database) -> None:
    random = chance()
    of = """experiments e JOIN projects p ON p.id = e.project_id JOIN workspaces w ON w.id = p.workspace_id"""
    for _ in range(QUESTIONS):
        await _change(db, random)
        wanted: dict[str, Any] = {"labels": random.sample(LABELS, random.choice((1, 1, 1, 2)))}
        conditions = ["e.config -> 'labels' @> CAST(:labels AS jsonb)"]
        if random.random() < 0.5:
            wanted["states"] = [ExperimentState.COMPLETED]
            conditions.append("e.state = 'COMPLETED'")
        if random.random() < 0.5:
            wanted["user_ids"] = [2]
            conditions.append("e.owner_id = 2")
        if random.random() < 0.5:
            wanted["archived"] = False
            conditions += ["NOT e.archived", "NOT p.archived", "NOT w.archived"]
        if random.random() < 0.2:
            wanted["name"] = "9"
            conditions.append("e.config ->> 'name' LIKE '%9%'")
        async with db.read() as connection:
            listed, pagination = await list_experiments(
                connection, GetExperimentsQuery(limit=-1, **wanted), rights=READER
            )
        assert pagination.total == len(listed), wanted
        assert pagination.total == await _counted(db, of, conditions, labels=json.dumps(wanted["labels"])), wanted


async def test_runs_of_experiments_in_sight(db: Database) -> None:
    random = chance()
    of = "trials t JOIN experiments e ON e.id = t.experiment_id"
    left_out = 0
    for _ in range(QUESTIONS):
        await _change(db, random)
        conditions, fields = ["e.state <> 'DELETING'"], []
        if random.random() < 0.5:
            fields.append(field("state", "=", "COMPLETED"))
            conditions.append("t.state = 'COMPLETED'")
        project, show_archived = random.choice((0, 1, 7)), random.random() < 0.3
        if project:
            conditions.append(f"t.project_id = {project}")
        if not show_archived:
            conditions += ["NOT t.archived", "NOT e.archived"]
        wanted = json.dumps({"filterGroup": group("and", *fields), "showArchived": show_archived})
        request = SearchRequest(limit=-1, project_id=project, filter=wanted)
        found, pagination = await search_runs(db, request, rights=READER, parts=ProjectParts())
        assert pagination.total == len(found) == await _counted(db, of, conditions), wanted
        left_out += await _counted(db, of, ["e.archived"])
    assert left_out > 0


ORDERS = [ExperimentSortBy.ID, ExperimentSortBy.NAME, ExperimentSortBy.END_TIME, ExperimentSortBy.FORKED_FROM]
SEARCH_ORDERS = ["", "id=desc", "startTime=asc", "searcherMetricsVal=desc", "tags=desc,state=asc", "hp.x=desc"]


RUN_ORDERS = ["", "id=desc", "startTime=asc", "searcherMetricsVal=desc", "tags=desc,state=asc", "localId=asc"]


async def test_pages_are_the_same_from_either_end(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    random = chance()
    async with db.transaction() as connection:
        await connection.execute(text("UPDATE experiments SET end_time = NULL, parent_id = id % 9 WHERE id % 2 = 0"))
        await connection.execute(text("UPDATE trials SET searcher_metric_value = id % 9"))
        await connection.execute(
            text("UPDATE experiments SET best_trial_id = (SELECT max(id) FROM trials) WHERE id % 3 = 0")
        )
    for _ in range(QUESTIONS):
        limit, offset = random.randrange(1, 40), random.randrange(-100, 300)
        listed = GetExperimentsQuery(
            sort_by=random.choice(ORDERS), order_by=random.choice(list(OrderBy)), offset=offset, limit=limit
        )
        searched = SearchRequest(sort=random.choice(SEARCH_ORDERS), offset=offset, limit=limit)
        of_runs = SearchRequest(
            sort=random.choice(RUN_ORDERS), offset=offset, limit=limit, project_id=random.choice((0, 1))
        )
        pages = []
        for nearer in (10_000, -10_000):  # never from the end, and always
            monkeypatch.setattr(page_rows, "NEARER_TO_THE_END", nearer)
            async with db.read() as connection:
                experiments, of_list = await list_experiments(connection, listed, rights=READER)
                found, of_search = await search_experiments(
                    connection, searched, rights=READER, now=datetime.now(UTC), parts=ProjectParts()
                )
            runs, of_search_of_runs = await search_runs(db, of_runs, rights=READER, parts=ProjectParts())
            pages.append(
                (
                    ([each.id for each in experiments], of_list),
                    ([each.experiment.id for each in found], of_search),
                    ([each.id for each in runs], of_search_of_runs),
                )
            )
        assert pages[0] == pages[1], (listed, searched, of_runs)


@pytest.mark.parametrize("counted_before", [-1, 0, 1])
async def test_rows_that_come_or_go_after_they_were_counted_move_no_page(
    db: Database, monkeypatch: pytest.MonkeyPatch, counted_before: int
) -> None:
    monkeypatch.setattr(page_rows, "NEARER_TO_THE_END", 0)
    async with db.read() as connection:
        everything = list(await connection.scalars(select(trials.c.id).order_by(trials.c.id)))
        page = sql_page(len(everything) - counted_before, offset=len(everything) - 20, limit=10)
        rows = await page_rows.rows_of_list(
            connection,
            select(trials.c.id),
            select(trials.c.id),
            [trials.c.id.asc()],
            page,
            known_total=select(func.count()).select_from(trials),
        )
    assert [row.id for row in rows] == everything[-20:-10]
