"""Large lists are read in their order by an index: a page costs neither a sort nor a look at all rows."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import list_experiments
from services.api.queries.models.models import list_models
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.runs.searches import search_runs
from services.api.wire.experiments.experiments import ExperimentSortBy, ExperimentState, GetExperimentsQuery
from services.api.wire.models.models import GetModelsQuery, SortModels
from services.api.wire.ordering import OrderBy
from services.api.wire.search.searches import SearchRequest
from tests.bench.reading.statements import Read, Statement, statements_of
from tests.scenarios.search.nodes import field, group

MANY = 5_000
FILL = f"""
INSERT INTO users (id, username) VALUES (3, 'newcomer');
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
SELECT (ARRAY['COMPLETED', 'ERROR'])[1 + n % 2], jsonb_build_object('name', 'run ' || n, 'labels',
         CASE WHEN n % 999 = 0 THEN ARRAY['l' || n % 9, 'rare'] ELSE ARRAY['l' || n % 9] END,
         'hyperparameters', jsonb_build_object('width', jsonb_build_object('type', 'const', 'val', n))),
       '', CASE WHEN n % 999 = 0 THEN 3 ELSE 1 + n % 2 END, 1, 'many' || n, now()
FROM generate_series(1, {MANY}) n;
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time, end_time, hparams,
                    summary_metrics, searcher_metric_value)
SELECT id, 1, id, 'many' || id, 'COMPLETED', now() + make_interval(secs => id), now(),
       jsonb_build_object('lr', id, 'optimizer', 'o' || id),
       jsonb_build_object('validation_metrics', jsonb_build_object('loss', jsonb_build_object('min', id))), id
  FROM experiments;
UPDATE experiments e SET best_trial_id = t.id FROM trials t WHERE t.experiment_id = e.id;
INSERT INTO projects (name, workspace_id, owner_id, key) VALUES ('small', 1, 2, 'SMALL');
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
SELECT 'COMPLETED', '{{}}', '', 2, 2, 'small', now();
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time)
SELECT id, 2, n, 'small' || n, 'COMPLETED', now() FROM experiments, generate_series(1, 3) n WHERE project_id = 2;
INSERT INTO models (name, owner_id, workspace_id) SELECT 'model ' || n, 2, 1 FROM generate_series(1, {MANY}) n;
"""
READER = UserRights(Principal(user_id=UserId(2), username="determined"))
BOTH = [OrderBy.ASC, OrderBy.DESC]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(database_url: str) -> str:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute(FILL)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()
    return database_url


def _experiments(direction: OrderBy) -> Read:
    query = GetExperimentsQuery(sort_by=ExperimentSortBy.NAME, order_by=direction, limit=10)
    return lambda db: _read(db, lambda connection: list_experiments(connection, query, rights=READER))


async def _read(db: Database, read: Any) -> object:
    async with db.read() as connection:
        return await read(connection)


def _searched(direction: OrderBy) -> Read:
    request = SearchRequest(sort="name=asc" if direction is OrderBy.ASC else "name=desc", limit=10, project_id=1)
    now = datetime.now(UTC)
    return lambda db: _read(
        db, lambda connection: search_experiments(connection, request, rights=READER, now=now, parts=ProjectParts())
    )


def _runs(direction: OrderBy, column: str = "experimentName") -> Read:
    way = "asc" if direction is OrderBy.ASC else "desc"
    request = SearchRequest(sort=f"{column}={way}", limit=10, project_id=1)
    return lambda db: search_runs(db, request, rights=READER, parts=ProjectParts())


def _models(direction: OrderBy) -> Read:
    query = GetModelsQuery(sort_by=SortModels.NAME, order_by=direction, limit=10)
    return lambda db: _read(db, lambda connection: list_models(connection, query, READER))


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize(
    ("of", "index"),
    [
        (_experiments, "ix_experiments_natural_order"),
        (_searched, "ix_experiments_natural_order"),
        (_runs, "ix_experiments_natural_order"),
        (_models, "ix_models_natural_order"),
    ],
)
async def test_large_lists_are_read_in_the_order_of_an_index(
    filled: str, of: Any, index: str, direction: OrderBy
) -> None:
    asked = await statements_of(asyncpg_url(filled), of(direction))
    plans = [await _plan_of(filled, statement) for statement in asked]
    assert any(f"using {index}" in plan for plan in plans), "\n\n".join(plans)


async def _plan_of(url: str, statement: Statement) -> str:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        lines = await connection.fetch(f"EXPLAIN {statement.sql}", *statement.parameters)
    finally:
        await connection.close()
    return "\n".join(line for (line,) in lines)


def _found(**wanted: Any) -> Read:
    query = GetExperimentsQuery(limit=10, **wanted)
    return lambda db: _read(db, lambda connection: list_experiments(connection, query, rights=READER))


def _search(search: Any, sort: str, *conditions: dict[str, Any], project_id: int = 1, offset: int = 0) -> Read:
    wanted = json.dumps({"filterGroup": group("and", *conditions), "showArchived": False})
    request = SearchRequest(sort=sort, limit=10, offset=offset, project_id=project_id, filter=wanted)
    return lambda db: search(db, request)


async def _search_experiments(db: Database, request: SearchRequest) -> None:
    async with db.read() as connection:
        await search_experiments(connection, request, rights=READER, now=datetime.now(UTC), parts=ProjectParts())


async def _search_runs(db: Database, request: SearchRequest) -> None:
    await search_runs(db, request, rights=READER, parts=ProjectParts())


START, IDS, DESC = ExperimentSortBy.START_TIME, ExperimentSortBy.ID, OrderBy.DESC
FIRST_PAGES = {
    "what det lists": (_found(archived=False, users=["determined"]), None),
    "det with all users": (_found(archived=False), "pk_experiments"),
    "newest ids": (_found(sort_by=IDS, order_by=DESC), "pk_experiments"),
    "newest": (_found(sort_by=START, order_by=DESC), "ix_experiments_started"),
    "oldest": (_found(sort_by=START), "ix_experiments_started"),
    "deep": (_found(sort_by=START, offset=MANY // 2), "ix_experiments_started"),
    "newest of a state": (_found(states=[ExperimentState.COMPLETED], sort_by=START, order_by=DESC), None),
    "newest of a user": (_found(user_ids=[2], sort_by=START, order_by=DESC), None),
    "newest of a label": (_found(labels=["l7"], sort_by=IDS, order_by=DESC), "pk_labelled_experiments"),
    "newest of a project": (_found(project_id=1, sort_by=START, order_by=DESC), None),
    "newest that are searched": (_search(_search_experiments, "startTime=desc"), "ix_experiments_started_last"),
    "oldest that are searched": (_search(_search_experiments, "startTime=asc"), "ix_experiments_started"),
    "the best that are searched": (
        _search(_search_experiments, "searcherMetricsVal=asc"),
        "ix_trials_searcher_metric",
    ),
    "the best of a project": (
        _found(sort_by=ExperimentSortBy.SEARCHER_METRIC_VAL, order_by=DESC, project_id=1),
        "ix_trials_searcher_metric_desc",
    ),
    "newest ids that are searched": (_search(_search_experiments, "id=desc"), None),
    "a search without a sort": (_search(_search_experiments, ""), None),
    "a search for a state": (_search(_search_experiments, "id=desc", field("state", "=", "COMPLETED")), None),
    "a search for a user": (_search(_search_experiments, "id=desc", field("user", "=", 2, kind="NUMBER")), None),
    "runs": (_search(_search_runs, ""), None),
    "newest runs": (_search(_search_runs, "startTime=desc"), "ix_trials_started"),
    "newest ids of runs": (_search(_search_runs, "id=desc"), None),
    "runs of the newest experiments": (_search(_search_runs, "experimentId=desc"), None),
    "runs of all projects": (_search(_search_runs, "id=desc", project_id=0), "pk_trials"),
}


@pytest.mark.parametrize("what", FIRST_PAGES)
async def test_a_page_costs_neither_a_sort_nor_all_rows(filled: str, what: str) -> None:
    read, index = FIRST_PAGES[what]
    (page,) = [each for each in await statements_of(asyncpg_url(filled), read) if "AS wanted" in each.sql]
    plan = await _plan_of(filled, page)
    assert "->  Sort " not in plan, plan
    assert not re.search("Seq Scan on (experiments|trials)", plan), plan
    assert index is None or f"using {index} " in plan, plan


LAST_PAGES = {
    "experiments": (_found(offset=-10), "Backward using pk_experiments"),
    "oldest": (_found(sort_by=START, order_by=DESC, offset=-10), "using ix_experiments_started "),
    "of a label": (_found(labels=["l7"], offset=-10), "Backward using pk_labelled_experiments"),
    "runs": (_search(_search_runs, "startTime=asc", offset=-10), "Backward using ix_trials_started"),
    "a search": (_search(_search_experiments, "id=desc", offset=-10), "using pk_experiments"),
}


@pytest.mark.parametrize("what", LAST_PAGES)
async def test_the_last_page_is_read_from_the_end(filled: str, what: str) -> None:
    read, index = LAST_PAGES[what]
    (page,) = [each for each in await statements_of(asyncpg_url(filled), read) if "AS wanted" in each.sql]
    plan = await _plan_of(filled, page)
    assert "->  Sort " not in plan, plan
    assert index in plan, plan
    assert MANY - 10 not in page.parameters, "the rows that the page would skip from the beginning"


TOTALS = {
    "what det lists": (_found(archived=False, users=["determined"]), "experiment_counts"),
    "experiments": (_found(), "experiment_counts"),
    "those of a state and project": (_found(states=[ExperimentState.ERROR], project_id=1), "experiment_counts"),
    "those of a label": (_found(labels=["l7"], archived=False), "label_counts"),
    "a search without a filter": (_search(_search_experiments, ""), "experiment_counts"),
    "a search for a user": (
        _search(_search_experiments, "", field("user", "=", 2, kind="NUMBER")),
        "experiment_counts",
    ),
    "runs": (_search(_search_runs, ""), "trial_counts"),
    "runs of a state": (_search(_search_runs, "", field("state", "=", "ERROR")), "trial_counts"),
    "runs of experiments that are in sight": (_search(_search_runs, ""), "archived_trial_counts"),
}


@pytest.mark.parametrize("what", TOTALS)
async def test_a_total_is_not_counted_row_by_row(filled: str, what: str) -> None:
    read, counts = TOTALS[what]
    (counting,) = [
        each for each in await statements_of(asyncpg_url(filled), read) if "sum(" in each.sql and "_counts" in each.sql
    ]
    plan = await _plan_of(filled, counting)
    assert f"Scan on {counts}" in plan, plan
    assert not re.search("Seq Scan on (experiments|trials)", plan), plan


LR = field("hp.lr", ">", MANY - 7, "RUN_HYPERPARAMETERS", "NUMBER")
OPTIMIZER = field("hp.optimizer", "=", "o7", "RUN_HYPERPARAMETERS", "TEXT")
LOSS = field("validation.loss.min", "<", 7, "VALIDATIONS", "NUMBER")
WIDTH = field("hp.width", "=", 7, "HYPERPARAMETERS", "NUMBER")
HIGHEST = field("hp.width", ">", MANY - 7, "HYPERPARAMETERS", "NUMBER")
VALUES = {
    "runs by a number": (_search(_search_runs, "id=desc", LR), "pk_run_numbers"),
    "runs by a text": (_search(_search_runs, "id=desc", OPTIMIZER), "pk_run_texts"),
    "runs by a metric": (_search(_search_runs, "startTime=desc", LOSS), "pk_run_numbers"),
    "experiments by a number": (_search(_search_experiments, "id=desc", WIDTH), "pk_experiment_numbers"),
    "experiments by a range": (_search(_search_experiments, "id=desc", HIGHEST), "ix_experiment_numbers_highest"),
    "experiments by a metric": (_search(_search_experiments, "startTime=desc", LOSS), "pk_run_numbers"),
}


@pytest.mark.parametrize("what", VALUES)
async def test_a_filter_by_a_value_looks_at_what_it_finds(filled: str, what: str) -> None:
    read, index = VALUES[what]
    statements = await statements_of(asyncpg_url(filled), read)
    plans = [await _plan_of(filled, each) for each in statements if "_numbers" in each.sql or "_texts" in each.sql]
    assert sum(f"using {index} " in plan for plan in plans) >= 2, plans
    assert not any(re.search("Seq Scan on (experiments|trials|run_|best_)", plan) for plan in plans), plans


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({"labels": ["rare"]}, "pk_labelled_experiments"),
        ({"users": ["newcomer"]}, "ix_experiments_of_owner"),
        ({"name": "UN 4321"}, "ix_experiments_name_trigrams"),
    ],
    ids=["labels", "users", "name"],
)
async def test_what_few_have_is_found_by_its_index(filled: str, wanted: dict[str, Any], index: str) -> None:
    recorded = await statements_of(asyncpg_url(filled), _found(**wanted))
    (statement,) = [each for each in recorded if "AS wanted" in each.sql]
    plan = await _plan_of(filled, statement)
    assert index in plan, plan


async def test_those_with_a_text_in_their_name_are_counted_by_its_index(filled: str) -> None:
    recorded = await statements_of(asyncpg_url(filled), _found(name="UN 4321"))
    (counting,) = [each for each in recorded if "count(*) AS count" in each.sql and "AS wanted" not in each.sql]
    assert "ix_experiments_name_trigrams" in await _plan_of(filled, counting)


@pytest.mark.parametrize("of_runs", [False, True])
async def test_searches_find_a_text_in_names_by_its_index(filled: str, of_runs: bool) -> None:
    node = group("and", field("experimentName" if of_runs else "name", "contains", "UN 4321", "EXPERIMENT", "TEXT"))
    request = SearchRequest(limit=10, filter=json.dumps({"filterGroup": node, "showArchived": True}))

    async def read(db: Database) -> object:
        if of_runs:
            return await search_runs(db, request, rights=READER, parts=ProjectParts())
        async with db.read() as connection:
            return await search_experiments(
                connection, request, rights=READER, now=datetime.now(UTC), parts=ProjectParts()
            )

    recorded = await statements_of(asyncpg_url(filled), read)
    found = [each for each in recorded if "name_trigrams" in each.sql]
    assert len(found) == 2
    for statement in found:
        assert "ix_experiments_name_trigrams" in await _plan_of(filled, statement)


@pytest.mark.parametrize("sort", ["", "id=desc", "startTime=desc", "experimentName=asc"])
async def test_a_plan_that_is_kept_does_not_look_for_the_runs_of_a_small_project_among_all(
    filled: str, sort: str
) -> None:
    request = SearchRequest(sort=sort, limit=10, project_id=2)
    page = (
        await statements_of(
            asyncpg_url(filled), lambda db: search_runs(db, request, rights=READER, parts=ProjectParts())
        )
    )[-1]
    connection = await asyncpg.connect(asyncpg_url(filled), server_settings={"plan_cache_mode": "force_generic_plan"})
    try:
        await connection.execute(f"PREPARE page AS {page.sql}")
        values = ", ".join(f"'{value}'" for value in page.parameters)
        explained = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE page ({values})")
        plan = "\n".join(line for (line,) in explained)
    finally:
        await connection.close()
    assert "AS wanted" in page.sql
    assert sum(map(int, re.findall(r"Rows Removed by Filter: (\d+)", plan))) < 10, plan


async def test_addresses_of_runs_are_sorted_without_a_key_of_each(filled: str) -> None:
    page = (await statements_of(asyncpg_url(filled), _runs(OrderBy.ASC, "localId")))[-1].sql
    order = page[page.index("ORDER BY") :]
    assert "trials.local_id ASC" in order
    assert "natural_sort_key" not in order
