"""Kueue's performance test of its scheduler, replayed by the queues of the scheduler with PostgreSQL and NATS:
``python -m tests.bench.kueue GENERATOR.yaml``.

Each cohort is a pool with one node; ``tests/load/simulate/traces/kueue.py`` says what becomes of the rest. A workload
is a trial. It comes into its queue when the test creates it; once it has its slots and its order is written it runs for
its time, and then its row says that it has ended, as after the report of a launcher. So what is measured is deciding
and giving slots, as Kueue's test measures admission: neither has pods. Nobody is preempted.

Beside it stands what Kueue publishes: 15,000 workloads of its baseline in 351 s.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

import asyncpg
import uvloop
from msgspec import Struct

from deploy.local.servers.nats import NatsServer
from libs.bus import BusSettings, connect_bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.migrate import upgrade
from libs.db.relay import relay_outbox
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.ids import UserId
from libs.run_until_first_exits import end
from services.api.access.principal import Principal
from services.api.actions.experiments.create import prepare_experiment, store_experiment
from services.api.wire.experiments.experiments import CreateExperimentRequest
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.settings import QueueSettings
from tests.bench.databases import empty_database
from tests.bench.system import BenchSystem, running_system
from tests.harness.app import new_app
from tests.load.simulate.report.table import table
from tests.load.simulate.traces.kueue import Cohort, read_kueue

PUBLISHED_JOBS: Final = 15_000
PUBLISHED_S: Final = 351
TICK_S: Final = 0.02
LATER: Final = "later"
"""Pool that nobody plans, of what has not been created yet."""
_CONFIG: Final = """
name: {name}
entrypoint: "true"
hyperparameters: {{lr: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{name: random, metric: loss, max_trials: {count}, max_concurrent_trials: {count}}}
resources: {{slots_per_trial: {slots}, resource_pool: {pool}, priority: {priority}}}
max_restarts: 0
"""
_CREATE: Final = "UPDATE allocations SET pool = $1, requested_at = now() WHERE allocation_id = ANY($2)"
_STARTED: Final = """
    SELECT allocation_id, extract(epoch FROM assigned_at - requested_at)::float AS waited_s FROM allocations
    WHERE assigned_at IS NOT NULL AND released_at IS NULL AND start_time IS NULL
"""
_RUNS: Final = "UPDATE allocations SET start_time = assigned_at WHERE allocation_id = ANY($1)"
_ENDS: Final = """
    UPDATE allocations SET released_at = now(), end_time = now(), state = 'TERMINATED' WHERE allocation_id = ANY($1)
"""


class Workload(Struct, frozen=True):
    allocation: str
    pool: str
    name: str
    """Of its class."""
    created_s: float
    run_s: float


async def replay(system: BenchSystem, cohorts: Sequence[Cohort]) -> tuple[float, dict[str, list[float]]]:
    """Seconds until all have ended, and how long those of each class waited."""
    cluster = ClusterConfig(
        checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"},
        resource_pools=tuple(PoolConfig(pool_name=cohort.trace.name) for cohort in cohorts),
    )
    with tempfile.TemporaryDirectory(prefix="resolute-kueue-") as folder:
        server = NatsServer(Path(folder), dies_with_parent=True)
        server.start()
        try:
            async with empty_database(system) as url, connect_bus(BusSettings(url=server.url)) as bus:
                await upgrade(url)
                async with connect_database(DatabaseSettings(url=url, pool_size=10)) as db:
                    workloads = await _workloads(db, url, cluster, cohorts)
                    queues = {cohort.trace.name: _queue(db, cluster, cohort) for cohort in cohorts}
                    acting = [asyncio.create_task(queue.run()) for queue in queues.values()]
                    acting.append(asyncio.create_task(relay_outbox(db, bus)))
                    try:
                        return await _run(url, workloads, queues)
                    finally:
                        await end(*acting)
        finally:
            server.stop()


def _queue(db: Database, cluster: ClusterConfig, cohort: Cohort) -> PoolQueue:
    name = cohort.trace.name
    pool = cluster.pool(name)
    assert pool is not None
    devices = tuple(Device(id=f"{slot:04}") for slot in range(cohort.slots))
    capacity = PoolCapacity(pool=name, backend="process", nodes=(NodeCapacity(name=name, devices=devices),))
    return PoolQueue(
        db=db,
        clock=SystemClock(),
        cluster=cluster,
        pool=pool,
        capacity=lambda _pool: capacity,
        ended=lambda _row: None,
        settings=QueueSettings(),
    )


async def _workloads(db: Database, url: str, cluster: ClusterConfig, cohorts: Sequence[Cohort]) -> dict[str, Workload]:
    """By allocation. Those of a queue that are alike are the trials of one experiment."""
    nobody_listens: Any = None
    app = new_app(db, nobody_listens, SystemClock(), cluster=cluster)
    owner = Principal(user_id=UserId(2), username="determined")
    engine = ExperimentReconciler(db=db, clock=SystemClock(), cluster=cluster)
    connection = await asyncpg.connect(url)
    found: dict[str, Workload] = {}
    for cohort in cohorts:
        alike: defaultdict[tuple[str, str, int, int], list[Any]] = defaultdict(list)
        for job, name in zip(cohort.trace.jobs, cohort.classes, strict=True):
            alike[job.user, name, job.slots, job.priority].append(job)
        ranks = sorted({priority for _, _, _, priority in alike})
        for (user, name, slots, priority), jobs in alike.items():
            config = _CONFIG.format(
                name=f"{user} {name}",
                count=len(jobs),
                slots=slots,
                pool=cohort.trace.name,
                priority=ranks.index(priority) + 1,
            )
            now = datetime.now(UTC)
            request = CreateExperimentRequest(config=config, activate=True)
            new = await prepare_experiment(app, request, require=lambda _project: None, now=now)
            experiment = (await store_experiment(app, new, owner, now=now)).id
            await engine.reconcile(experiment)
            rows = await connection.fetch("UPDATE allocations SET pool = $1 WHERE pool <> $1 RETURNING *", LATER)
            for row, job in zip(rows, jobs, strict=True):
                workload = Workload(row["allocation_id"], cohort.trace.name, name, job.submitted_s, job.run_s)
                found[workload.allocation] = workload
    await connection.execute("DELETE FROM outbox")
    await connection.execute("ANALYZE")
    await connection.close()
    return found


async def _run(
    url: str, workloads: dict[str, Workload], queues: dict[str, PoolQueue]
) -> tuple[float, dict[str, list[float]]]:
    connection = await asyncpg.connect(url)
    coming = sorted(workloads.values(), key=lambda one: one.created_s, reverse=True)
    running: list[tuple[float, str]] = []
    waits: defaultdict[str, list[float]] = defaultdict(list)
    left = len(workloads)
    began = time.perf_counter()
    while left:
        now = time.perf_counter() - began
        changed: defaultdict[str, list[str]] = defaultdict(list)
        while coming and coming[-1].created_s <= now:
            one = coming.pop()
            changed[one.pool].append(one.allocation)
        for pool, created in changed.items():
            await connection.execute(_CREATE, pool, created)
        started = await connection.fetch(_STARTED)
        for row in started:
            one = workloads[row["allocation_id"]]
            waits[one.name].append(row["waited_s"])
            heappush(running, (now + one.run_s, one.allocation))
        await connection.execute(_RUNS, [row["allocation_id"] for row in started])
        ended = []
        while running and running[0][0] <= now:
            ended.append(heappop(running)[1])
        await connection.execute(_ENDS, ended)
        left -= len(ended)
        for pool in {*changed, *(workloads[allocation].pool for allocation in ended)}:
            queues[pool].notify()
        await asyncio.sleep(TICK_S)
    taken = time.perf_counter() - began
    await connection.close()
    return taken, waits


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kueue", description=__doc__)
    parser.add_argument("generator", type=Path, help="the file that the test is generated from")
    path = parser.parse_args(argv).generator
    try:
        cohorts = read_kueue(path)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    with running_system() as system:
        taken, waits = uvloop.run(replay(system, cohorts))
    jobs = sum(len(of) for of in waits.values())
    means = ", ".join(f"{name} {sum(of) / len(of):.1f} s" for name, of in sorted(waits.items()))
    rows = [
        ("Resolute", f"{jobs:,}", f"{taken:.0f} s", f"{jobs / taken:.0f}", means),
        ("Kueue, published", f"{PUBLISHED_JOBS:,}", f"{PUBLISHED_S} s", f"{PUBLISHED_JOBS / PUBLISHED_S:.0f}", ""),
    ]
    print(table(("", "Workloads", "Total time", "A second", "Mean wait"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
