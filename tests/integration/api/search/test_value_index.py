"""Filters that an index answers find what a look at each row finds, whatever is stored and however it is asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import ColumnElement, select, union_all

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries import matching as pages
from services.api.queries.experiments import experiments as experiments_module
from services.api.queries.experiments.experiments import best_trials
from services.api.queries.experiments.experiments import counting as counting_experiments
from services.api.queries.project_parts import ProjectParts
from services.api.queries.run_totals import IN_SIGHT, STAYS
from services.api.queries.run_totals import counting as counting_runs
from services.api.queries.search import experiments as search
from services.api.queries.search.by_index.value_index import matching
from services.api.queries.search.conditions import EXPERIMENTS, RUNS, SearchTable
from services.api.queries.search.language.filters import Group, parse_filter
from services.api.queries.search.runs import searches
from services.api.wire.search.searches import SearchRequest
from tests.scenarios.search.nodes import field, group

READER = UserRights(Principal(user_id=UserId(2), username="determined"))
LONG_NUMBER, LONG_FRACTION = "1" + "7" * 300, "0." + "0" * 150 + "3" * 300
VALUES = ["0.1", "0.10", "1e-1", "0", "-3", "7", "1e308", "-1e-300", LONG_NUMBER, f"-{LONG_NUMBER}", LONG_FRACTION,
          f"0.1{'0' * 300}1", f"0.0{'9' * 300}", '"NaN"', '"Infinity"', '"-Infinity"', '"adam"', '"7"', '""', "null",
          "true", "[]", "[7]", "{}", '{"a": 7}', '{"a": {"b": "adam"}}', '{"a.b": 7}', '{"type": "const", "val": 7}',
          json.dumps("long " * 500)]  # fmt: skip
SPACES = [*({"type": "const", "val": json.loads(each)} for each in ("0.1", "7", '"adam"', '"NaN"', "null", '{"a": 7}')),
          {"type": "log", "minval": -3, "maxval": 7}, {"type": "int", "minval": 7, "maxval": 0.1}, {"type": "double"},
          {"type": "double", "minval": 7}, {"type": "categorical", "vals": [7]}, {"type": {"type": "const", "val": 7}},
          {"a": {"type": "const", "val": 7}}, 7, "adam", [{"type": "const", "val": 7}]]  # fmt: skip
COMPARED = [0.1, 7, 0, 1e308, -1e308, "inf", "nan", 1e-200, 2**63, int(LONG_NUMBER)]
FILL = f"""
INSERT INTO projects (id, name, key, workspace_id, owner_id) VALUES (2, 'second', 'SEC', 1, 1);
INSERT INTO experiments (id, state, config, original_config, owner_id, project_id, job_id, archived, start_time)
SELECT n, CASE n % 23 WHEN 0 THEN 'DELETING' ELSE 'COMPLETED' END,
       jsonb_build_object('name', 'e', 'hyperparameters',
                          jsonb_build_object('p', spaces -> n % jsonb_array_length(spaces))),
       '', 1, 1 + (n % 17 = 0)::int, 'job ' || n, n % 13 = 0, now()
  FROM generate_series(1, 200) n, (SELECT '{json.dumps(SPACES)}'::jsonb) AS s (spaces);
INSERT INTO trials (id, experiment_id, project_id, local_id, request_id, state, archived, start_time, end_time, hparams,
                    summary_metrics, summary_in_rows, searcher_metric_value)
SELECT n, e.id, e.project_id, n, n::text, 'COMPLETED', n % 11 = 0, now(), CASE WHEN n % 5 > 0 THEN now() END,
       jsonb_build_object('p', value) || CASE n % 7 WHEN 0 THEN many ELSE '{{}}' END,
       jsonb_build_object('avg_metrics', '{{"a.b": {{"min": 7}}}}'::jsonb, 'validation_metrics',
         jsonb_build_object('a.b', jsonb_build_object('min', value, 'last', 7))
         || CASE n % 7 WHEN 1 THEN many ELSE '{{}}' END),
       n % 19 = 0, CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN 'NaN'::float8 ELSE n % 9 END
  FROM generate_series(1, 399) n
 CROSS JOIN (SELECT '[{", ".join(VALUES)}]'::jsonb) AS g (given)
 CROSS JOIN LATERAL (SELECT given -> n % jsonb_array_length(given)) AS v (value)
 CROSS JOIN (SELECT jsonb_object_agg('m' || i, '{{"min": 1}}'::jsonb) FROM generate_series(1, 250) i) AS m (many)
  JOIN experiments e ON e.id = 1 + n / 2;
UPDATE experiments SET best_trial_id = 2 * id - 1 - id % 2;
INSERT INTO metric_marks (trial_id) SELECT id FROM trials WHERE summary_in_rows
"""
OPERATORS = ["=", "<", "<=", ">", ">="]
RUN_FIELDS = [
    *(field("hp.p", operator, value, "RUN_HYPERPARAMETERS", "NUMBER") for operator in OPERATORS for value in COMPARED),
    field("p", "contains", 7, "RUN_HYPERPARAMETERS", "NUMBER"),
    field("hp.p.a", "=", 7, "RUN_HYPERPARAMETERS", "NUMBER"),
    field("hp.p.a.b", "=", 7, "RUN_HYPERPARAMETERS", "NUMBER"),
    field("hp.p.val", "=", 7, "RUN_HYPERPARAMETERS", "NUMBER"),
    *(field("hp.p", "=", each, "RUN_HYPERPARAMETERS", "TEXT") for each in ("adam", "7", "[7]", "{}", "null", "NaN")),
    field("hp.p", "=", "long " * 500, "RUN_HYPERPARAMETERS", "TEXT"),
    field("hp.p.a.b", "=", "adam", "RUN_HYPERPARAMETERS", "TEXT"),
]
METRIC_FIELDS = [
    *(
        field("validation.a.b.min", operator, value, "VALIDATIONS", "NUMBER")
        for operator in OPERATORS
        for value in COMPARED
    ),
    field("validation.a.b.last", "=", 7, "VALIDATIONS", "NUMBER"),
    field("validation.m3.min", "=", 1, "CUSTOM_METRIC", "NUMBER"),
]
DEFINED_FIELDS = [
    *(field("hp.p", operator, value, "HYPERPARAMETERS", "NUMBER") for operator in OPERATORS for value in COMPARED),
    field("hp.p.val", "=", 7, "HYPERPARAMETERS", "NUMBER"),
    field("hp.p.a", "=", 7, "HYPERPARAMETERS", "NUMBER"),
    field("hp.p.type", "=", 7, "HYPERPARAMETERS", "NUMBER"),
]
BEYOND = [
    (RUNS, field("hp.p", ">", 10**300, "RUN_HYPERPARAMETERS", "NUMBER")),
    (RUNS, field("hp.p.0", "=", 7, "RUN_HYPERPARAMETERS", "NUMBER")),
    (RUNS, field("hp.p", "!=", 7, "RUN_HYPERPARAMETERS", "NUMBER")),
    (RUNS, field("hp.p", "contains", "a", "RUN_HYPERPARAMETERS", "TEXT")),
    (RUNS, field("training.a.b.min", "=", 7, "TRAINING", "NUMBER")),
    (RUNS, field("validation.a.b.min", "=", "7", "VALIDATIONS", "TEXT")),
    (EXPERIMENTS, field("hp.p", "contains", 7, "HYPERPARAMETERS", "NUMBER")),
    (EXPERIMENTS, field("hp.p.-1", "=", 7, "HYPERPARAMETERS", "NUMBER")),
]
SEARCHES = [
    *((RUNS, each) for each in (*RUN_FIELDS, *METRIC_FIELDS)),
    *((EXPERIMENTS, each) for each in (*DEFINED_FIELDS, *METRIC_FIELDS)),
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def db(database_url: str) -> AsyncIterator[Database]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute(FILL)
    await connection.close()
    async with connect_database(DatabaseSettings(url=database_url, pool_size=2)) as db:
        yield db


def _root(wanted: Any) -> Group:
    return parse_filter(_filter(wanted, archived=False)).root


def _filter(wanted: Any, *, archived: bool) -> str:
    return json.dumps({"filterGroup": group("and", wanted), "showArchived": archived})


def _in_list(table: SearchTable, project_id: int, *, archived: bool) -> list[ColumnElement[bool]]:
    conditions = [STAYS if table.of_runs else experiments.c.state != "DELETING"]
    if not archived:
        conditions += [~trials.c.archived, IN_SIGHT] if table.of_runs else [~experiments.c.archived]
    if project_id:
        conditions.append((trials if table.of_runs else experiments).c.project_id == project_id)
    return conditions


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("project_id", [0, 1])
async def test_what_is_found_and_how_many(db: Database, project_id: int, archived: bool) -> None:
    found = 0
    async with db.read() as connection:
        for table, wanted in SEARCHES:
            counting = counting_runs if table.of_runs else counting_experiments
            conditions = _in_list(table, project_id, archived=archived)
            by_index = matching(
                table,
                _root(wanted),
                conditions,
                project_id=project_id,
                rights=READER,
                shows_archived=archived,
                counting=counting,
            )
            if _is_beyond(wanted):
                assert by_index is None, wanted
                continue
            assert by_index is not None, wanted
            keys = sorted(await connection.scalars(union_all(*by_index.keys)))
            in_projects = conditions[-1:] if project_id else []
            plain = select(table.key).select_from(_joined(table)).where(by_index.holds, *in_projects)
            assert keys == sorted(await connection.scalars(plain)), wanted
            total = await connection.scalar(by_index.total)
            assert total == await connection.scalar(counting([*conditions, by_index.holds])), wanted
            found += len(keys)
    assert found > 1000


def _is_beyond(wanted: Any) -> bool:
    return isinstance(wanted["value"], int) and wanted["value"] >= 2**63


def _joined(table: SearchTable) -> Any:
    if table.of_runs:
        return trials
    return experiments.outerjoin(best_trials, best_trials.c.id == experiments.c.best_trial_id)


@pytest.mark.parametrize(
    ("table", "wanted"), BEYOND, ids=lambda one: getattr(one, "name", None) or json.dumps(one)[:80]
)
async def test_what_no_index_answers(db: Database, table: SearchTable, wanted: Any) -> None:
    counting = counting_runs if table.of_runs else counting_experiments
    assert (
        matching(table, _root(wanted), [], project_id=1, rights=READER, shows_archived=False, counting=counting) is None
    )


PAGES = [
    {"sort": sort, "offset": offset, "limit": limit}
    for sort in ("", "id=desc", "startTime=desc", "searcherMetricsVal=asc", "id=asc,startTime=desc")
    for offset, limit in ((0, 10), (7, 5), (-3, 2), (0, -1), (0, -2))
]


@pytest.mark.parametrize(("many", "most"), [(20, 20_000), (20, 25), (1000, 20_000)], ids=["first", "given up", "all"])
@pytest.mark.parametrize("project_id", [0, 1])
async def test_pages(db: Database, monkeypatch: pytest.MonkeyPatch, many: int, most: int, project_id: int) -> None:
    monkeypatch.setattr(pages, "MANY", many)
    monkeypatch.setattr(pages, "MOST_LOOKED_AT", most)
    for module, wanted in (
        (searches, RUN_FIELDS[11]),
        (searches, METRIC_FIELDS[10]),
        (search, DEFINED_FIELDS[10]),
        (search, METRIC_FIELDS[10]),
    ):
        for page in PAGES:
            request = SearchRequest(project_id=project_id, filter=_filter(wanted, archived=False), **page)
            found = await _found(db, module, request)
            with monkeypatch.context() as patched:
                patched.setattr(module, "matching", lambda *_, **__: None)
                assert found == await _found(db, module, request), (wanted, page)


SORTS = ["searcherMetricsVal=asc", "searcherMetricsVal=desc", "searcherMetricsVal=desc,id=desc"]


@pytest.mark.parametrize("wanted", [None, field("user", "=", 1, kind="NUMBER")], ids=["all", "of a user"])
@pytest.mark.parametrize("sort", SORTS)
async def test_experiments_by_the_metric_of_their_search(
    db: Database, monkeypatch: pytest.MonkeyPatch, sort: str, wanted: Any
) -> None:
    filtered = "" if wanted is None else _filter(wanted, archived=False)
    by_index = 0
    for offset, limit in ((0, 10), (20, 30), (100, 30), (0, -1), (-5, 3)):
        request = SearchRequest(project_id=1, filter=filtered, sort=sort, offset=offset, limit=limit)
        found = await _found(db, search, request)
        with monkeypatch.context() as patched:
            patched.setattr(experiments_module, "_is_by_searcher_metric", lambda _: False)
            assert found == await _found(db, search, request)
        by_index += len(found[0])
    assert by_index > 100


async def _found(db: Database, module: Any, request: SearchRequest) -> Any:
    if module is searches:
        runs, pagination = await searches.search_runs(db, request, rights=READER, parts=ProjectParts())
        return [each.id for each in runs], pagination
    async with db.read() as connection:
        found, pagination = await search.search_experiments(
            connection, request, rights=READER, now=datetime.now(UTC), parts=ProjectParts()
        )
        return [each.experiment.id for each in found], pagination
