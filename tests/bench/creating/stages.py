"""Processor and statements of each stage of creating an experiment, in this process, on a database of its own.

Statements are round trips, the beginning and the end of a transaction among them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import asyncpg
import msgspec

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.config import build_config, merge, parse_experiment_config, random_name
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.db.migrate import upgrade
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.ids import UserId
from libs.searchers.search_start import start_search
from services.api.access.principal import Principal
from services.api.actions.experiments.create import prepare_experiment, store_experiment
from services.api.wire.experiments.experiments import CreateExperimentRequest
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.plan.planner import plan
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.queue.pool_rows import load_pool
from services.scheduler.settings import QueueSettings
from tests.bench.creating.config import CONFIG
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.harness.app import new_app
from tests.harness.statements import counted_statements

WARM_UP: Final = 30
ROUNDS: Final = 100
SLOTS: Final = 2 * (WARM_UP + ROUNDS)
POOL: Final = "default"


class _Stages:
    """Processor of each stage in milliseconds, and its statements, by round."""

    def __init__(self) -> None:
        self.ms: dict[str, list[float]] = {}
        self.statements: dict[str, list[int]] = {}

    @contextmanager
    def stage(self, name: str, counted: list[str]) -> Iterator[None]:
        before, began = len(counted), time.process_time()
        yield
        self.ms.setdefault(name, []).append(1000 * (time.process_time() - began))
        self.statements.setdefault(name, []).append(len(counted) - before)

    def results(self) -> Iterator[Result]:
        for name, values in self.ms.items():
            yield _result(f"creating, {name}", statistics.median(values[WARM_UP:]), "ms")
            asked = statistics.median(self.statements[name][WARM_UP:])
            if asked:
                yield _result(f"creating, {name}: statements", asked, "statements")


def _result(name: str, value: float, unit: str) -> Result:
    return Result(name=name, value=value, unit=unit, baseline=1.0, goal=None, better="lower")


async def measure(system: BenchSystem) -> list[Result]:
    stages = _Stages()
    async with _database(system.database_url) as url:
        with counted_statements() as counted:
            async with connect_database(DatabaseSettings(url=url, pool_size=2)) as db:
                create = _creation(db, stages, counted)
                for _ in range(WARM_UP + ROUNDS):
                    await create()
    return list(stages.results())


def _creation(db: Database, stages: _Stages, counted: list[str]) -> Callable[[], Awaitable[None]]:
    cluster = ClusterConfig(checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"})
    nobody_listens: Any = None
    app = new_app(db, nobody_listens, SystemClock(), cluster=cluster)
    owner = Principal(user_id=UserId(2), username="determined")
    node = NodeCapacity(name="bench", devices=tuple(Device(id=f"{number:03}") for number in range(SLOTS)))
    capacity = PoolCapacity(pool=POOL, backend="process", nodes=(node,))
    (pool,) = cluster.resource_pools
    engine = ExperimentReconciler(db=db, clock=SystemClock(), cluster=cluster)
    queue = PoolQueue(
        db=db,
        clock=SystemClock(),
        cluster=cluster,
        pool=pool,
        capacity=lambda _pool: capacity,
        ended=lambda _row: None,
        settings=QueueSettings(),
    )

    async def create() -> None:
        now = datetime.now(UTC)
        request = CreateExperimentRequest(config=CONFIG, activate=True)
        with stages.stage("parse", counted):
            user = parse_experiment_config(CONFIG)
        with stages.stage("merge", counted):
            merge(user, {})
        with stages.stage("complete and validate", counted):
            config = build_config(
                user,
                template={},
                pool_defaults=msgspec.to_builtins(cluster.defaults_of(POOL)),
                workspace_storage=None,
                master_storage=cluster.checkpoint_storage,
                invariants=[],
                resource_pool=POOL,
                priority_default=cluster.default_priority(POOL),
                seed=int(now.timestamp()),
                name=random_name(random.Random()),
            )
        with stages.stage("begin the search", counted):
            start_search(config)
        with stages.stage("prepare, all of these", counted):
            new = await prepare_experiment(app, request, require=lambda _project: None, now=now)
        with stages.stage("store", counted):
            stored = await store_experiment(app, new, owner, now=now)
        with stages.stage("search", counted):
            await engine.reconcile(stored.id)
        with stages.stage("look again at what is done", counted):
            await engine.reconcile(stored.id)
        with stages.stage("plan", counted):
            async with db.transaction() as connection:
                plan(
                    (
                        await load_pool(connection, pool, cluster=cluster, capacity=capacity, now=SystemClock().now())
                    ).snapshot
                )
        with stages.stage("plan and order", counted):
            outcome = await queue.plan_once()
            assert outcome.started == 1
        with stages.stage("look at a queue that is empty", counted):
            await queue.plan_once()

    return create


@asynccontextmanager
async def _database(server: str) -> AsyncIterator[str]:
    """The address of an empty database."""
    name = f"creating_{uuid4().hex[:8]}"
    connection = await asyncpg.connect(server)
    await connection.execute(f"CREATE DATABASE {name}")
    url = server.rpartition("/")[0] + f"/{name}"
    try:
        await upgrade(url)
        yield url
    finally:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await connection.close()
