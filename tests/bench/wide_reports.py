"""What a metric report costs by how many names its trial has and how many values it carries; what folding leaves.

Reports are folded here rather than by the owner of the summaries, which does so at a time of its own: what folding
takes is part of what a report costs.
"""

from __future__ import annotations

import json
import time

import asyncpg

from libs.db.migrate import upgrade
from services.api.metrics.rows.folding import fold_trial
from services.api.metrics.rows.settling import settle
from services.api.metrics.rows.statements import STORE_SUMMARIES
from tests.bench.cpu import spent_s
from tests.bench.databases import empty_database
from tests.bench.result import Result
from tests.bench.rows import BenchTrial, insert_trials
from tests.bench.system import BenchSystem
from tests.harness.raw_http import RawConnection

NAMES = (10, 10_000, 100_000)
WIDTHS = (1, 10, 100, 1_000, 10_000)
REPORTED = 10
REPORTS = 400
VALUES = 100_000
LEAST_VALUES = 100_000
"""Per second, at the best width."""
AT_ONCE = 10_000
ROUNDS = 3
FOLDS = 1_000_000
FOLDED_NAMES = 1_000
NOBODYS = -1
"""Number of a summary that belongs to no trial."""


async def measure(system: BenchSystem) -> list[Result]:
    trials = await insert_trials(system.database_url, len(NAMES) + len(WIDTHS))
    with_names = dict(zip(NAMES, trials, strict=False))
    steps = {names: await _fill(system, trial, names) for names, trial in with_names.items()}
    costs: dict[int, list[float]] = {names: [] for names in NAMES}
    settling: dict[int, list[float]] = {names: [] for names in NAMES}
    for _ in range(ROUNDS):  # alternating, so that what else the machine does hits all
        for names, trial in with_names.items():
            reported = (await _report(system, trial, REPORTED, REPORTS, steps[names]))[0]
            folded, settled = await _keep(system, trial)
            costs[names].append(reported + folded / REPORTS)
            settling[names].append(settled)
            steps[names] += REPORTS
    least = {names: min(of_names) for names, of_names in costs.items()}
    results = [
        Result(
            name=f"processor time of a report of {REPORTED} values, trial of {names} names",
            value=least[names] * 1e6,
            unit="us",
            baseline=least[NAMES[0]] * 1e6,
            goal=None if names == NAMES[0] else 1.2,
            better="lower",
        )
        for names in NAMES
    ]
    results.append(
        Result(
            name=f"processor time of settling {NAMES[-1]} names, to {NAMES[1]}",
            value=min(settling[NAMES[-1]]) * 1e3,
            unit="ms",
            baseline=min(settling[NAMES[1]]) * 1e3,
            goal=None,
            better="lower",
        )
    )
    rates: dict[int, float] = {}
    for width, trial in zip(WIDTHS, trials[len(NAMES) :], strict=True):
        count = max(10, min(REPORTS, VALUES // width))
        _, seconds = await _report(system, trial, width, count, 0)
        rates[width] = width * count / seconds
        results.append(
            Result(
                name=f"metric values per second, {width} in a report",
                value=rates[width],
                unit="values/s",
                baseline=rates[WIDTHS[0]],
                goal=None,
                better="higher",
            )
        )
    results.append(
        Result(
            name="metric values per second, at the best width",
            value=max(rates.values()),
            unit="values/s",
            baseline=LEAST_VALUES,
            goal=1,
            better="higher",
        )
    )
    return [*results, await _bloat(system)]


async def _keep(system: BenchSystem, trial: BenchTrial) -> tuple[float, float]:
    """Processor seconds of folding all reports of a trial, and of settling it after one more."""
    pids = system.pids()
    connection = await asyncpg.connect(system.database_url, server_settings={"jit": "off"})
    try:
        before = spent_s(pids)
        await fold_trial(connection, trial.trial_id)
        folded = spent_s(pids)
        await settle(connection, trial.trial_id)
        return folded - before, spent_s(pids) - folded
    finally:
        await connection.close()


async def _bloat(system: BenchSystem) -> Result:
    """How much a table of summaries grows by a million folds of the same thousand names."""
    names = [f"layer.{n}.weight" for n in range(FOLDED_NAMES)]
    size = "SELECT pg_total_relation_size('metric_summaries')"
    sizes = []
    async with empty_database(system) as url:  # nobody else writes summaries there
        await upgrade(url)
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("SET synchronous_commit = off")
            # Folding makes the room itself; an ANALYZE beside it would keep what was replaced for as long as it runs.
            await connection.execute("ALTER TABLE metric_summaries SET (autovacuum_enabled = off)")
            for step in range(FOLDS // FOLDED_NAMES):
                summary = {"type": "number", "count": step, "sum": 1.5, "min": 0.25, "max": 0.75, "mean": 0.5}
                rows = ([json.dumps(summary)] * FOLDED_NAMES, ["0.25"] * FOLDED_NAMES, [step] * FOLDED_NAMES)
                await connection.execute(STORE_SUMMARIES, NOBODYS, names, *rows)
                sizes.append(await connection.fetchval(size))
        finally:
            await connection.close()
    return Result(
        name="table of summaries after a million folds",
        value=sizes[-1] / 1024,
        unit="KiB",
        baseline=sizes[0] / 1024,
        goal=1.2,
        better="lower",
    )


async def _fill(system: BenchSystem, trial: BenchTrial, names: int) -> int:
    """Report each of ``names`` metrics once; returns the last step."""
    connection = await _connect(system, trial)
    step = 0
    for first in range(0, names, AT_ONCE):
        step += 1
        metrics = {f"layer.{n}.weight": 0.5 for n in range(first, min(names, first + AT_ONCE))}
        await connection.send(_request(connection, trial, step, metrics))
    connection.close()
    return step


async def _report(system: BenchSystem, trial: BenchTrial, width: int, count: int, step: int) -> tuple[float, float]:
    """Processor seconds of the system per report, and seconds that all of them took."""
    connection = await _connect(system, trial)
    metrics = {f"layer.{n}.weight": 0.25 for n in range(width)}
    requests = [_request(connection, trial, step + n, metrics) for n in range(1, count + 1)]
    pids = system.pids()
    before, began = spent_s(pids), time.perf_counter()
    for request in requests:
        await connection.send(request)
    seconds = time.perf_counter() - began
    spent = spent_s(pids) - before
    connection.close()
    return spent / count, seconds


async def _connect(system: BenchSystem, trial: BenchTrial) -> RawConnection:
    headers = {"Grpc-Metadata-x-allocation-token": f"Bearer {trial.token}"}
    return await RawConnection.open(system.options.master_url, headers)


def _request(connection: RawConnection, trial: BenchTrial, step: int, metrics: dict[str, float]) -> bytes:
    report = {
        "trialId": trial.trial_id,
        "trialRunId": 1,
        "stepsCompleted": step,
        "reportTime": None,
        "metrics": {"avgMetrics": metrics, "batchMetrics": None},
    }
    body = json.dumps({"group": "training", "metrics": report}).encode()
    return connection.request(f"/api/v1/trials/{trial.trial_id}/metrics", body)
