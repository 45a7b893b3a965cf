"""Large lists are read in the order of names by an index, and a page costs no sorting of all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from libs.db.engine import Database, asyncpg_url
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import list_experiments
from services.api.queries.models.models import list_models
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.runs import search_runs
from services.api.wire.experiments.experiments import ExperimentSortBy, GetExperimentsQuery
from services.api.wire.models.models import GetModelsQuery, SortModels
from services.api.wire.ordering import OrderBy
from services.api.wire.search.searches import SearchRequest
from tests.bench.reading.statements import Read, statements_of

MANY = 5_000
FILL = f"""
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
SELECT 'COMPLETED', jsonb_build_object('name', 'run ' || n), '', 2, 1, 'many' || n, now()
FROM generate_series(1, {MANY}) n;
INSERT INTO trials (experiment_id, project_id, local_id, request_id, state, start_time)
SELECT id, 1, id, 'many' || id, 'COMPLETED', now() FROM experiments;
INSERT INTO models (name, owner_id, workspace_id) SELECT 'model ' || n, 2, 1 FROM generate_series(1, {MANY}) n;
ANALYZE
"""
READER = UserRights(Principal(user_id=UserId(2), username="determined"))
BOTH = [OrderBy.ASC, OrderBy.DESC]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(database_url: str) -> str:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute(FILL)
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
    return lambda db: _read(db, lambda connection: search_experiments(connection, request, rights=READER, now=now))


def _runs(direction: OrderBy, column: str = "experimentName") -> Read:
    way = "asc" if direction is OrderBy.ASC else "desc"
    request = SearchRequest(sort=f"{column}={way}", limit=10, project_id=1)
    return lambda db: _read(db, lambda connection: search_runs(connection, request, rights=READER))


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
    connection = await asyncpg.connect(asyncpg_url(filled))
    try:
        plans = [
            "\n".join(line for (line,) in await connection.fetch(f"EXPLAIN {each.sql}", *each.parameters))
            for each in await statements_of(asyncpg_url(filled), of(direction))
        ]
    finally:
        await connection.close()
    assert any(f"using {index}" in plan for plan in plans), "\n\n".join(plans)


async def test_addresses_of_runs_are_sorted_without_a_key_of_each(filled: str) -> None:
    page = (await statements_of(asyncpg_url(filled), _runs(OrderBy.ASC, "localId")))[-1].sql
    order = page[page.index("ORDER BY") :]
    assert "trials.local_id ASC" in order
    assert "natural_sort_key" not in order
