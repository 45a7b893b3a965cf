"""Lists as what they do not show grows: one page among 10,000 experiments, and among ten times as many.

What the database does for all statements of a list, as it says itself. The exponent is behind the name: 0 is a cost
that does not grow, 1 one that grows as the rows do. RESOLUTE_BENCH_ROWS=1000000 compares with as many as that.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any, Final

import asyncpg

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.migrate import upgrade
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import list_experiments
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search.experiments import search_experiments
from services.api.queries.search.runs.searches import search_runs
from services.api.wire.experiments.experiments import ExperimentSortBy, ExperimentState, GetExperimentsQuery
from services.api.wire.ordering import OrderBy
from services.api.wire.search.searches import SearchRequest
from services.scheduler.row_counts import RowCounts
from tests.bench.reading.statements import Read, Statement, connect, statements_of
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.scenarios.search.nodes import field, group

FEW: Final = 10_000
MANY: Final = int(os.environ.get("RESOLUTE_BENCH_ROWS") or 100_000)
TIMES: Final = 12
FACTOR: Final = 1.2
READER: Final = UserRights(Principal(user_id=UserId(2), username="determined"))
_FILL: Final = (
    "INSERT INTO users (username) SELECT 'user' || n FROM generate_series(1, 20) n",
    """INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, archived, start_time,
                                end_time)
       SELECT (ARRAY['COMPLETED', 'COMPLETED', 'ERROR', 'CANCELED'])[1 + h % 4],
              jsonb_build_object('name', 'run ' || h % 100000, 'labels', jsonb_build_array('bench', 'l' || h % 50),
                'searcher', '{"name": "random", "metric": "loss"}'::jsonb,
                'hyperparameters', jsonb_build_object('width', jsonb_build_object('type', 'const', 'val', h % 10))),
              '', 1 + h % 22, 1, 'job ' || n, h % 50 = 0, now() - make_interval(secs => $1::int - n), now()
       FROM generate_series(1, $1::int) n, LATERAL (SELECT abs(hashint4(n)) / 3) hashed(h)""",
    """INSERT INTO trials (experiment_id, project_id, local_id, request_id, hparams, state, start_time, end_time,
                           summary_metrics, searcher_metric_value)
       SELECT e.id, 1, e.id, 'one', jsonb_build_object('lr', h % 1000 / 1000.0), e.state, e.start_time, e.end_time,
              jsonb_build_object('validation_metrics', jsonb_build_object('loss', jsonb_build_object(
                'type', 'number', 'count', 1, 'min', h % 997 / 997.0, 'last', h % 997 / 997.0))), h % 997 / 997.0
       FROM experiments e, LATERAL (SELECT abs(hashint4(e.id::int)) / 7) hashed(h) WHERE $1::int > 0""",
    "UPDATE experiments e SET best_trial_id = t.id FROM trials t WHERE t.experiment_id = e.id AND $1::int > 0",
)


async def measure(system: BenchSystem) -> list[Result]:
    databases = [await _filled(system.database_url, rows) for rows in (FEW, MANY)]
    connections = [await connect(url) for url in databases]
    results = []
    for name, (read, goal) in _reads().items():
        statements = [await statements_of(url, read) for url in databases]
        times: tuple[list[float], list[float]] = ([], [])
        # In turns, so that what else the machine does hits both.
        for _ in range(TIMES):
            for taken, connection, each in zip(times, connections, statements, strict=True):
                taken.append(await _milliseconds(connection, each))
        # A tenth is faster: moments in which the machine does little else.
        few, many = (quantiles(taken, n=10)[0] for taken in times)
        exponent = math.log(many / few, MANY / FEW)
        results.append(
            Result(name=f"{name}, rows^{exponent:.2f}", value=many, unit="ms", baseline=few, goal=goal, better="lower")
        )
    for connection in connections:
        await connection.close()
    return results


async def _filled(url: str, rows: int) -> str:
    """Address of a database with as many experiments, all of them over, and as many runs; made once."""
    server, name = url.rpartition("/")[0], f"bench_lists_{rows}"
    connection = await asyncpg.connect(url)
    there = await connection.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", name)
    if not there:
        await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    if not there:
        await upgrade(f"{server}/{name}")
        connection = await asyncpg.connect(f"{server}/{name}")
        for statement in _FILL:
            await connection.execute(statement, *([rows] if "$1" in statement else []))
        async with connect_database(DatabaseSettings(url=f"{server}/{name}", pool_size=2)) as db:
            # As the scheduler does, until nothing is left to be counted.
            while await connection.fetchval("SELECT EXISTS (SELECT FROM archived_trial_changes)"):
                await RowCounts(db=db).put_together()
        await connection.execute("VACUUM ANALYZE")
        await connection.close()
    return f"{server}/{name}"


async def _milliseconds(connection: asyncpg.Connection, statements: list[Statement]) -> float:
    taken = 0.0
    for each in statements:
        plan = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) {each.sql}", *each.parameters)
        taken += sum(float(ms) for (line,) in plan for ms in re.findall(r"^Execution Time: ([\d.]+) ms", line))
    return taken


def _reads() -> dict[str, tuple[Read, float | None]]:
    """What is read, and how much more it may cost among more; None where rows that match have to be looked at."""
    metric, rare_metric = (field("validation.loss.min", "<", less, "VALIDATIONS", "NUMBER") for less in (0.1, 0.001))
    rate, rare_rate = (field("hp.lr", "<", less, "RUN_HYPERPARAMETERS", "NUMBER") for less in (0.1, 0.001))
    width = field("hp.width", "<", 1, "HYPERPARAMETERS", "NUMBER")
    newest = {"sort_by": ExperimentSortBy.START_TIME, "order_by": OrderBy.DESC}
    return {
        "det experiment list": (_listed(archived=False, users=["determined"]), FACTOR),
        "newest 200 experiments": (_listed(**newest), FACTOR),
        "200 experiments by name": (_listed(sort_by=ExperimentSortBy.NAME), FACTOR),
        "newest 200 of a state": (_listed(states=[ExperimentState.COMPLETED], **newest), FACTOR),
        "newest 200 of a user": (_listed(user_ids=[2], **newest), FACTOR),
        "newest 200 of a project": (_listed(project_id=1, **newest), FACTOR),
        "200 experiments of a label": (_listed(labels=["l7"]), FACTOR),
        "the last 200 experiments": (_listed(offset=-200), FACTOR),
        "40 experiments by id": (_searched(_search_experiments, "id=desc"), FACTOR),
        "40 newest experiments of a state": (
            _searched(_search_experiments, "startTime=desc", field("state", "=", "COMPLETED")),
            FACTOR,
        ),
        "40 experiments by a metric": (_searched(_search_experiments, "id=desc", metric), None),
        "40 experiments by a rare metric": (_searched(_search_experiments, "id=desc", rare_metric), None),
        "40 experiments by a hyperparameter": (_searched(_search_experiments, "id=desc", width), None),
        "40 best experiments": (_searched(_search_experiments, "searcherMetricsVal=asc"), FACTOR),
        "40 newest runs": (_searched(_search_runs, "startTime=desc"), FACTOR),
        "the last 40 runs": (_searched(_search_runs, "startTime=desc", offset=-40), FACTOR),
        "40 newest runs of a state": (_searched(_search_runs, "startTime=desc", field("state", "=", "ERROR")), FACTOR),
        "40 runs by a hyperparameter": (_searched(_search_runs, "id=desc", rate), None),
        "40 newest runs by a hyperparameter": (_searched(_search_runs, "startTime=desc", rate), None),
        "40 runs by a rare hyperparameter": (_searched(_search_runs, "id=desc", rare_rate), None),
        "40 runs by a metric": (_searched(_search_runs, "id=desc", metric), None),
    }


def _listed(**wanted: Any) -> Read:
    query = GetExperimentsQuery(limit=200, **wanted)

    async def read(db: Database) -> None:
        async with db.read() as connection:
            await list_experiments(connection, query, rights=READER)

    return read


def _searched(search: Any, sort: str, *conditions: Mapping[str, Any], offset: int = 0) -> Read:
    wanted = json.dumps({"filterGroup": group("and", *conditions), "showArchived": False})
    request = SearchRequest(sort=sort, limit=40, offset=offset, project_id=1, filter=wanted)

    async def read(db: Database) -> None:
        await search(db, request)

    return read


async def _search_experiments(db: Database, request: SearchRequest) -> None:
    async with db.read() as connection:
        await search_experiments(connection, request, rights=READER, now=datetime.now(UTC), parts=ProjectParts())


async def _search_runs(db: Database, request: SearchRequest) -> None:
    await search_runs(db, request, rights=READER, parts=ProjectParts())
