"""Measures the time from the end of a pod until the pod that gets its slots is created, and where it goes.

A real scheduler and a real launcher, each a process, with a database and a bus: 16 simulated nodes of 8 GPUs are full
of pods of 4, which end one after the other while others wait. Both ends are when a watch of the API server hears of
them, so what Kubernetes takes to make the pod of a Job is in it.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from libs.bus import Bus, SnapshotEnd
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.migrate import upgrade
from libs.events import subjects
from libs.events.observations import AllocationObserved
from libs.run_until_first_exits import end
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.informer import Informer
from services.launcher.backends.kubernetes.client.objects import Named, Pod
from tests.bench.kubernetes.site import BenchCluster, Site, open_site
from tests.bench.result import Result
from tests.harness import PostgresServer
from tests.harness.processes import ServiceProcess
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import CLUSTER_ID, POOL, cluster
from tests.integration.scheduler.api import Api

PODS: Final = 32
"""That run at once."""
SLOTS: Final = 4
MEASURED: Final = 60
APART_S: Final = 0.5
FIRST_S: Final = 5.0
GOAL_MS: Final = 200
_WHOLE: Final = "from a pod's end to the next pod"


@dataclass
class Times:
    """When something was heard of each allocation first."""

    ended: dict[str, float] = field(default_factory=dict)
    """Of its pod, by the watch."""
    told: dict[str, float] = field(default_factory=dict)
    """The same, on the bus."""
    ordered: dict[str, float] = field(default_factory=dict)
    job: dict[str, float] = field(default_factory=dict)
    pod: dict[str, float] = field(default_factory=dict)


async def measure(bench: BenchCluster) -> list[Result]:
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(open_site(bench))
        db = await stack.enter_async_context(_database(bench.directory))
        stack.enter_context(_scheduler(bench, db))
        await site.launch()
        times = await stack.enter_async_context(_watching(site))
        api = Api(db, site.bus)
        for number in range(PODS):
            await _submit(api, FIRST_S + number * APART_S)
        await eventually(lambda: len(times.pod) == PODS, timeout_s=120)
        for _ in range(MEASURED):
            await _submit(api, PODS * APART_S)
        await eventually(lambda: len(times.pod) == PODS + MEASURED, timeout_s=300, every_s=0.2)
        rows = {row["allocation_id"]: row for row in await api.allocations()}
    return list(_results(times, rows))


def _results(times: Times, rows: dict[str, Any]) -> Any:
    """Each pod that ends makes room for the next one that is created."""
    ended = sorted(times.ended, key=times.ended.__getitem__)[:MEASURED]
    began = sorted(times.pod, key=times.pod.__getitem__)[PODS:]
    stages: dict[str, list[float]] = {}
    for before, after in zip(ended, began, strict=True):
        at = {
            "": times.ended[before],
            "heard on the bus": times.told[before],
            "slots free": rows[before]["released_at"].timestamp(),
            "planned": rows[after]["assigned_at"].timestamp(),
            "ordered": times.ordered[after],
            "Job made": times.job[after],
            "pod made": times.pod[after],
        }
        names = list(at)
        for one, other in itertools.pairwise(names):
            stages.setdefault(f"of that, until {other}", []).append((at[other] - at[one]) * 1000)
        stages.setdefault(_WHOLE, []).append((at["pod made"] - at[""]) * 1000)
    total = stages[_WHOLE]
    yield _row(f"{_WHOLE}, median", statistics.median(total), goal=1.0)
    yield _row(f"{_WHOLE}, 90%", statistics.quantiles(total, n=10)[-1])
    for name in [name for name in stages if name != _WHOLE]:
        yield _row(name, statistics.median(stages[name]))


def _row(name: str, value: float, *, goal: float | None = None) -> Result:
    return Result(name=name, value=value, unit="ms", baseline=GOAL_MS, goal=goal, better="lower")


async def _submit(api: Api, runs_s: float) -> None:
    pod = {"metadata": {"annotations": {"sim/run-seconds": str(runs_s)}}}
    resources = {"slots_per_trial": SLOTS, "resource_pool": POOL}
    await api.create(resources=resources, max_restarts=0, environment={"pod_spec": pod})


@asynccontextmanager
async def _database(directory: Path) -> AsyncIterator[Database]:
    directory.chmod(0o755)  # the user of the server has to enter it
    server = PostgresServer(directory / "postgres", dies_with_parent=True)
    server.start()
    try:
        await upgrade(server.url())
        async with connect_database(DatabaseSettings(url=server.url())) as db:
            async with db.transaction() as connection:
                await connection.exec_driver_sql(f"UPDATE cluster SET cluster_id = '{CLUSTER_ID}'")
            yield db
    finally:
        server.stop()


def _scheduler(bench: BenchCluster, db: Database) -> ServiceProcess:
    config = bench.directory / "scheduler-cluster.yaml"
    config.write_bytes(msgspec.yaml.encode(cluster()))
    return ServiceProcess(
        "services.scheduler.main",
        log_path=bench.directory / "scheduler.log",
        env={
            "RESOLUTE_DATABASE__URL": db.url,
            "RESOLUTE_BUS__URL": bench.nats.url,
            "RESOLUTE_CLUSTER_CONFIG": str(config),
            "RESOLUTE_ENGINE__LOG_WAIT_S": "0",
        },
        forked=False,
    )


@asynccontextmanager
async def _watching(site: Site) -> AsyncIterator[Times]:
    times = Times()

    def saw(seen: AllocationObserved) -> None:
        if seen.pods and all(pod.state == "TERMINATED" for pod in seen.pods):
            times.told.setdefault(seen.allocation, time.time())

    async with connect(site.settings) as api, site.observing(saw):
        paths = site.namespace.paths
        pods = Informer(api, what="pods", path=paths.pods, kind=Pod, handler=_Pods(times))
        jobs = Informer(api, what="jobs", path=paths.jobs, kind=Named, handler=_Jobs(times))
        watching = [asyncio.create_task(one) for one in (pods.run(), jobs.run(), _orders(site.bus, times))]
        try:
            yield times
        finally:
            await end(*watching)


async def _orders(bus: Bus, times: Times) -> None:
    async for change in bus.bucket(subjects.ORDERS_BUCKET).watch(subjects.orders_of(POOL)):
        if not isinstance(change, SnapshotEnd) and change.value is not None:
            times.ordered.setdefault(msgspec.json.decode(change.value)["allocation"], time.time())


class _Pods:
    def __init__(self, times: Times) -> None:
        self._times = times

    def on_upsert(self, item: Pod) -> None:
        now, allocation = time.time(), item.metadata.annotations.allocation
        self._times.pod.setdefault(allocation, now)
        if item.status.phase in ("Succeeded", "Failed"):
            self._times.ended.setdefault(allocation, now)

    def on_delete(self, item: Pod) -> None:
        """Pods that have ended are of no interest."""


class _Jobs:
    def __init__(self, times: Times) -> None:
        self._times = times

    def on_upsert(self, item: Named) -> None:
        self._times.job.setdefault(item.metadata.annotations.allocation, time.time())

    def on_delete(self, item: Named) -> None:
        """As of pods."""
