"""One read at a time through the api, against its statements alone: at most half as long again, and a millisecond."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any, Final

from libs.cluster.loading import load_cluster_config
from libs.db.engine import Database
from services.api.queries.cluster.jobs import in_line, load_queue, wire_jobs
from services.api.queries.trials.metrics import read_metrics
from services.api.queries.trials.trials import list_trials, load_trial
from services.api.wire.trials.trials import GetExperimentTrialsQuery
from tests.bench.reading.rows import BenchRuns, insert_many
from tests.bench.reading.statements import Read, connect, prepared, statements_of
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.harness.raw_http import RawConnection

TIMES: Final = 200
FACTOR: Final = 1.5
MORE_MS: Final = 1.0


async def measure(system: BenchSystem) -> list[Result]:
    rows = await insert_many(system.database_url)
    connection = await connect(system.database_url)
    api = await RawConnection.open(system.options.master_url, {"Authorization": f"Bearer {system.log_in()}"})
    results = []
    for name, path, read in _reads(rows):
        alone = await prepared(connection, await statements_of(system.database_url, read))
        request = api.get_request(path)
        results.append(await _compare(name, lambda: api.send(request), alone))  # noqa: B023
    api.close()
    await connection.close()
    return results


async def _compare(name: str, request: Callable[[], Awaitable[Any]], alone: Callable[[], Awaitable[None]]) -> Result:
    """In turns; the fastest tenth is of moments in which the machine does little else."""
    through_api, sql = [], []
    for _ in range(TIMES):
        sql.append(await milliseconds(alone))
        through_api.append(await milliseconds(request))
    baseline = quantiles(sql, n=10)[0]
    return Result(
        name=f"{name}, a tenth is faster",
        value=quantiles(through_api, n=10)[0],
        unit="ms",
        baseline=baseline,
        goal=FACTOR + MORE_MS / baseline,
        better="lower",
    )


async def milliseconds(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1e3


def _reads(rows: BenchRuns) -> list[tuple[str, str, Read]]:
    """Names, paths, and what the api does for them."""
    now = datetime.now(UTC)
    cluster = load_cluster_config(None)

    async def page(db: Database) -> None:
        async with db.read() as connection:
            await list_trials(connection, rows.experiment_id, GetExperimentTrialsQuery(), now=now)

    async def one(db: Database) -> None:
        async with db.read() as connection:
            await load_trial(connection, rows.trial_id, now=now)

    async def few_metrics(db: Database) -> None:
        async for _ in read_metrics(db, [rows.trial_id]):
            pass

    async def queue(db: Database) -> None:
        async with db.read() as connection:
            await wire_jobs(connection, in_line(await load_queue(connection, cluster, "default"), cluster, "default"))

    return [
        ("a page of 100 trials", f"/api/v1/experiments/{rows.experiment_id}/trials", page),
        ("one trial", f"/api/v1/trials/{rows.trial_id}", one),
        ("20 metrics of a trial", f"/api/v1/trials/metrics/trial_metrics?trialIds={rows.trial_id}", few_metrics),
        ("a queue of 100 jobs", "/api/v1/job-queues-v2", queue),
    ]
