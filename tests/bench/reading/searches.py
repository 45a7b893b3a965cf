"""Searches with a nested filter and a sort by metric among 100,000 runs, against their statements: 95th percentiles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any, Final

import msgspec

from libs.db.engine import Database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.pagination import COUNT_ONLY
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.runs.searches import search_runs
from services.api.wire.search.searches import SearchRequest
from tests.bench.reading.reads import milliseconds
from tests.bench.reading.rows import insert_many
from tests.bench.reading.statements import Read, connect, prepared, statements_of
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.harness.raw_http import RawConnection

TIMES: Final = 40
SORT: Final = "searcherMetricsVal=desc"
COUNTED_BY_INDEX: Final = "Index Only Scan using ix_trials_of_project"
FOUND_BY_INDEX: Final = "Index Scan using pk_trials"
SORTED_BY_INDEX: Final = "Index Scan using ix_trials_searcher_metric"
FACTOR: Final = 1.5
READER: Final = UserRights(Principal(user_id=UserId(2), username="determined"))


async def measure(system: BenchSystem) -> list[Result]:
    await insert_many(system.database_url)
    connection = await connect(system.database_url)
    api = await RawConnection.open(system.options.master_url, {"Authorization": f"Bearer {system.log_in()}"})
    results = []
    for name, path, wanted, read, index in _searches():
        statements = await statements_of(system.database_url, read)
        plans = [
            line for each in statements for (line,) in await connection.fetch(f"EXPLAIN {each.sql}", *each.parameters)
        ]
        assert any(index in line for line in plans), plans
        alone = await prepared(connection, statements)
        request = api.request(f"/api/v1/{path}", msgspec.json.encode(wanted))
        through_api, sql = [], []
        # In turns, so that what else the machine does hits both.
        for _ in range(TIMES):
            sql.append(await milliseconds(alone))
            through_api.append(await milliseconds(lambda: api.send(request)))  # noqa: B023
        results.append(
            Result(
                name=f"{name} among 100,000 runs, 95th percentile",
                value=quantiles(through_api, n=20)[-1],
                unit="ms",
                baseline=quantiles(sql, n=20)[-1],
                goal=FACTOR,
                better="lower",
            )
        )
    api.close()
    await connection.close()
    return results


def _searches() -> list[tuple[str, str, SearchRequest, Read, str]]:
    """Names, paths, what is asked, what the api does for it, and what the plan of the database has to say."""
    good = _field("validation.loss.min", "<", 0.1, "VALIDATIONS", "NUMBER")
    of_runs = _request(
        _field("state", "=", "COMPLETED", "RUN", "TEXT"),
        _group("or", _field("hp.lr", "<", 0.2, "RUN_HYPERPARAMETERS", "NUMBER"), good),
    )
    of_experiments = _request(
        _field("state", "=", "COMPLETED", "EXPERIMENT", "TEXT"),
        _group("or", _field("tags", "contains", "l7", "EXPERIMENT", "TEXT"), good),
    )

    all_runs = SearchRequest(project_id=1, limit=COUNT_ONLY)

    async def runs(db: Database) -> None:
        await search_runs(db, of_runs, rights=READER, parts=ProjectParts())

    async def total(db: Database) -> None:
        await search_runs(db, all_runs, rights=READER, parts=ProjectParts())

    async def experiments(db: Database) -> None:
        async with db.read() as connection:
            await search_experiments(
                connection, of_experiments, rights=READER, now=datetime.now(UTC), parts=ProjectParts()
            )

    return [
        ("runs", "runs", of_runs, runs, SORTED_BY_INDEX),
        ("the total of runs", "runs", all_runs, total, COUNTED_BY_INDEX),
        ("experiments-search", "experiments-search", of_experiments, experiments, FOUND_BY_INDEX),
    ]


def _request(*children: Mapping[str, Any]) -> SearchRequest:
    wanted = json.dumps({"filterGroup": _group("and", *children), "showArchived": False})
    return SearchRequest(project_id=1, limit=40, sort=SORT, filter=wanted)


def _group(conjunction: str, *children: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "group", "conjunction": conjunction, "children": list(children)}


def _field(column: str, operator: str, value: Any, location: str, kind: str) -> dict[str, Any]:
    return {
        "kind": "field",
        "columnName": column,
        "operator": operator,
        "value": value,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
    }
