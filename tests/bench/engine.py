"""Validation reports per second that a search hears of through PostgreSQL, against bare transactions for each of them.

Sixteen trials report at once, each report in a transaction of its own, while the engine tells the search of what has
come. The bare transactions write the same rows: the report, then what the search knows without it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncpg
import httpx

from libs.clock import SystemClock
from libs.cluster.loading import load_cluster_config
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from services.api.metrics.statements import TELL_SEARCHERS
from services.scheduler.experiments.reconciler import ExperimentReconciler
from tests.bench.result import Result
from tests.bench.system import BenchSystem

TRIALS: Final = 16
REPORTS: Final = 200
ROUNDS: Final = 3
CONFIG: Final = f"""
name: bench
entrypoint: "true"
hyperparameters: {{lr: {{type: double, minval: 0, maxval: 1}}}}
searcher:
  {{name: async_halving, metric: loss, max_trials: {TRIALS}, max_concurrent_trials: {TRIALS}, num_rungs: 3,
   time_metric: batches, max_time: 1000000}}
"""
_TELL: Final = "INSERT INTO bench_events (experiment_id, trial_id, kind, payload) VALUES ($1, $2, 'validation', $3)"
_HEAR: Final = (
    "UPDATE bench_snapshots SET snapshot = $2 WHERE experiment_id = $1",
    "DELETE FROM bench_events WHERE trial_id = $1",
)


async def measure(system: BenchSystem) -> list[Result]:
    url = system.database_url
    experiment, trials = await _create(system)
    connections = [await asyncpg.connect(url) for _ in range(TRIALS)]
    heard, bare = [], []
    for _ in range(ROUNDS):
        bare.append(await _bare(connections, experiment, trials))
        heard.append(await _through_engine(url, connections, experiment, trials))
    for connection in connections:
        await connection.close()
    return [
        Result(
            name="validation reports that a search hears of",
            value=max(heard),
            unit="reports/s",
            baseline=max(bare),
            goal=0.5,
            better="higher",
        )
    ]


async def _create(system: BenchSystem) -> tuple[int, list[int]]:
    """A search that is paused, so that nothing runs, and its trials."""
    headers = {"Authorization": f"Bearer {system.log_in()}"}
    body = {"config": CONFIG, "modelDefinition": [], "activate": False}
    async with httpx.AsyncClient(base_url=system.options.master_url, headers=headers, timeout=60) as client:
        answer = (await client.post("/api/v1/experiments", json=body)).raise_for_status().json()
        experiment = int(answer["experiment"]["id"])
        found = (await client.get(f"/api/v1/experiments/{experiment}/trials")).raise_for_status().json()
    trials = [int(trial["id"]) for trial in found["trials"]]
    assert len(trials) == TRIALS, f"{len(trials)} trials"
    return experiment, trials


async def _through_engine(url: str, connections: list[asyncpg.Connection], experiment: int, trials: list[int]) -> float:
    """Reports per second."""
    cluster = load_cluster_config(None)
    async with connect_database(DatabaseSettings(url=url, pool_size=2)) as db:
        engine = ExperimentReconciler(db=db, clock=SystemClock(), cluster=cluster)
        reader = await asyncpg.connect(url)

        async def report(connection: asyncpg.Connection, trial: int, step: int) -> None:
            await connection.execute(TELL_SEARCHERS, [experiment], [trial], [_payload(step)])

        began = time.perf_counter()
        reporting = asyncio.ensure_future(_by_all(connections, trials, report))
        is_last = False
        while not is_last:
            is_last = reporting.done()
            await engine.reconcile(experiment)
        taken = time.perf_counter() - began
        await reporting
        left = await reader.fetchval("SELECT count(*) FROM searcher_events WHERE experiment_id = $1", experiment)
        await reader.close()
        assert left == 0, f"{left} reports were not heard"
    return TRIALS * REPORTS / taken


async def _bare(connections: list[asyncpg.Connection], experiment: int, trials: list[int]) -> float:
    """Reports per second."""
    first = connections[0]
    for table, source in (("bench_events", "searcher_events"), ("bench_snapshots", "searcher_snapshots")):
        await first.execute(f"DROP TABLE IF EXISTS {table}")
        await first.execute(f"CREATE TABLE {table} (LIKE {source} INCLUDING ALL)")
    await first.execute(
        "INSERT INTO bench_snapshots SELECT * FROM searcher_snapshots WHERE experiment_id = $1", experiment
    )
    snapshot = await first.fetchval("SELECT snapshot FROM bench_snapshots")

    async def report(connection: asyncpg.Connection, trial: int, step: int) -> None:
        await connection.execute(_TELL, experiment, trial, _payload(step))
        async with connection.transaction():
            await connection.execute(_HEAR[0], experiment, snapshot)
            await connection.execute(_HEAR[1], trial)

    began = time.perf_counter()
    await _by_all(connections, trials, report)
    return TRIALS * REPORTS / (time.perf_counter() - began)


async def _by_all(
    connections: list[asyncpg.Connection], trials: list[int], report: Callable[[Any, int, int], Awaitable[None]]
) -> None:
    """Each trial reports over a connection of its own, one step after the other."""

    async def one_trial(connection: asyncpg.Connection, trial: int) -> None:
        for step in range(1, REPORTS + 1):
            await report(connection, trial, step)

    await asyncio.gather(*(one_trial(*pair) for pair in zip(connections, trials, strict=True)))


def _payload(step: int) -> str:
    return json.dumps({"metrics": {"loss": 1 / step, "batches": step}})
