"""Metric reports per second through the api, against one-row inserts of the same rows with a commit each."""

from __future__ import annotations

import asyncio
import json
import time

import asyncpg

from libs.db.tables.metrics import partition_ddl
from tests.bench.cpu import Spent, spent_s
from tests.bench.result import Result
from tests.bench.rows import BenchTrial, insert_trials
from tests.bench.system import BenchSystem
from tests.harness.raw_http import RawConnection

TRIALS = 16
REPORTS = 400
ROUNDS = 5
METRICS = {"loss": 0.25, "accuracy": 0.75, "learning_rate": 0.001, "epochs": 1}


async def measure(system: BenchSystem) -> list[Result]:
    through_api: list[Spent] = []
    inserted: list[Spent] = []
    pids = system.pids()
    # Alternating, so that what else the machine does hits both.
    for _ in range(ROUNDS):
        before = spent_s(pids)
        rate = await _insert(system.database_url)
        inserted.append(Spent(rate, spent_s(pids) - before))
        trials = await insert_trials(system.database_url, TRIALS)
        before = spent_s(pids)
        rate = await _report(system, trials)
        through_api.append(Spent(rate, spent_s(pids) - before))
    return [
        Result(
            name="metric reports per second, 16 trials",
            value=max(spent.rate for spent in through_api),
            unit="reports/s",
            baseline=max(spent.rate for spent in inserted),
            goal=0.6,
            better="higher",
        ),
        Result(
            name="metric reports per second of processors, 16 trials",
            value=TRIALS * REPORTS / min(spent.cpu_s for spent in through_api),
            unit="reports/s",
            baseline=TRIALS * REPORTS / min(spent.cpu_s for spent in inserted),
            goal=0.6,
            better="higher",
        ),
    ]


async def _report(system: BenchSystem, trials: list[BenchTrial]) -> float:
    """Reports per second."""

    async def one_trial(trial: BenchTrial) -> None:
        headers = {"Grpc-Metadata-x-allocation-token": f"Bearer {trial.token}"}
        connection = await RawConnection.open(system.options.master_url, headers)
        path = f"/api/v1/trials/{trial.trial_id}/metrics"
        requests = [connection.request(path, _body(trial.trial_id, step)) for step in range(1, REPORTS + 1)]
        await everybody_is_ready.wait()
        for request in requests:
            await connection.send(request)
        connection.close()

    everybody_is_ready = asyncio.Barrier(TRIALS + 1)
    async with asyncio.TaskGroup() as group:
        for trial in trials:
            group.create_task(one_trial(trial))
        await everybody_is_ready.wait()
        started_at = time.perf_counter()
    return TRIALS * REPORTS / (time.perf_counter() - started_at)


def _body(trial_id: int, step: int) -> bytes:
    # Exactly what the client sends.
    report = {
        "trialId": trial_id,
        "trialRunId": 1,
        "stepsCompleted": step,
        "reportTime": None,
        "metrics": {"avgMetrics": METRICS, "batchMetrics": None},
    }
    return json.dumps({"group": "training", "metrics": report}).encode()


async def _insert(url: str) -> float:
    """Rows per second."""
    connections = [await asyncpg.connect(url) for _ in range(TRIALS)]
    await connections[0].execute("DROP TABLE IF EXISTS bench_metrics")
    # Like the real one down to its partitions, which cost an insert a little as well.
    await connections[0].execute("CREATE TABLE bench_metrics (LIKE metrics INCLUDING ALL) PARTITION BY HASH (trial_id)")
    for statement in partition_ddl():
        await connections[0].execute(statement.replace("metrics", "bench_metrics"))
    document = json.dumps({"avg_metrics": METRICS, "batch_metrics": None})

    async def one_trial(connection: asyncpg.Connection, trial: int) -> None:
        statement = await connection.prepare(
            "INSERT INTO bench_metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)"
            " VALUES ($1, 1, 'training', 'TRAINING', $2, now(), $3::jsonb)"
        )
        await everybody_is_ready.wait()
        for step in range(1, REPORTS + 1):
            await statement.fetch(trial, step, document)

    everybody_is_ready = asyncio.Barrier(TRIALS + 1)
    async with asyncio.TaskGroup() as group:
        for trial, connection in enumerate(connections, start=1):
            group.create_task(one_trial(connection, trial))
        await everybody_is_ready.wait()
        started_at = time.perf_counter()
    rate = TRIALS * REPORTS / (time.perf_counter() - started_at)
    for connection in connections:
        await connection.close()
    return rate
