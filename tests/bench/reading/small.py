"""Small reads by one client: processor of api and database, beside a request that asks the database nothing."""

from __future__ import annotations

from statistics import median
from typing import Final, NamedTuple

import asyncpg
import msgspec
import uvloop

from tests.bench.cpu import scheduled_s, workers_of
from tests.bench.reading.rows import BenchRuns, insert_many
from tests.bench.result import Result
from tests.bench.system import BenchSystem, running_system
from tests.harness.raw_http import RawConnection

EXPERIMENTS: Final = 200
USERS: Final = 30
WORKSPACES: Final = 10
ROUNDS: Final = 5
TIMES: Final = 100
"""Requests of a round."""
NOTHING: Final = "/api/v1/master/telemetry"


class SmallRead(NamedTuple):
    """``goal`` in multiples of NOTHING, api and database together."""

    name: str
    path: str
    goal: float
    body: bytes | None = None


def measure(_: BenchSystem) -> list[Result]:
    """In a system of its own, with few rows."""
    with running_system() as system:
        return uvloop.run(_measure(system))


async def _measure(system: BenchSystem) -> list[Result]:
    rows = await insert_many(system.database_url, experiments=EXPERIMENTS)
    await _insert_others(system.database_url)
    api = await RawConnection.open(system.options.master_url, {"Authorization": f"Bearer {system.log_in()}"})
    try:
        return [await _compare(system, api, read) for read in _reads(rows)]
    finally:
        api.close()


async def _compare(system: BenchSystem, api: RawConnection, read: SmallRead) -> Result:
    request = api.get_request(read.path) if read.body is None else api.request(read.path, read.body)
    nothing = api.get_request(NOTHING)
    value, baseline = [], []
    for _ in range(ROUNDS):
        baseline.append(await _processor_us(system, api, nothing))
        value.append(await _processor_us(system, api, request))
    return Result(
        name=f"{read.name}, processor",
        value=median(value),
        unit="us",
        baseline=median(baseline),
        goal=read.goal,
        better="lower",
    )


async def _processor_us(system: BenchSystem, api: RawConnection, request: bytes) -> float:
    """Of one request, in the api and in the database."""
    pids = system.pids()
    processes = [pids["api"], *workers_of(pids["postgres"])]
    await api.send(request)
    before = [scheduled_s(process) for process in processes]
    for _ in range(TIMES):
        await api.send(request)
    after = [scheduled_s(process) for process in processes]
    # A process that ended meanwhile has served nobody here.
    return sum(max(0.0, now - then) for then, now in zip(before, after, strict=True)) / TIMES * 1e6


def _reads(rows: BenchRuns) -> list[SmallRead]:
    return [
        SmallRead("the master", "/api/v1/master", 6),
        SmallRead("who I am", "/api/v1/me", 4.5),
        SmallRead(f"{USERS} users", "/api/v1/users", 6),
        SmallRead(f"{WORKSPACES} workspaces", "/api/v1/workspaces", 8),
        SmallRead("names of metrics", f"/api/v1/experiments/metrics-stream/metric-names?ids={rows.experiment_id}", 17),
        SmallRead("20 metrics", f"/api/v1/trials/metrics/trial_metrics?trialIds={rows.trial_id}", 9),
        SmallRead("one trial", f"/api/v1/trials/{rows.trial_id}", 25),
        SmallRead("one experiment", f"/api/v1/experiments/{rows.experiment_id}", 30),
        SmallRead("40 runs", "/api/v1/runs", 60, msgspec.json.encode({"projectId": 1, "limit": 40})),
    ]


async def _insert_others(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "INSERT INTO users (username, display_name) SELECT 'user' || n, 'User' FROM generate_series(3, $1::int) n",
            USERS,
        )
        await connection.execute(
            "INSERT INTO workspaces (name, owner_id) SELECT 'small ' || n, 1 FROM generate_series(2, $1::int) n",
            WORKSPACES,
        )
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
