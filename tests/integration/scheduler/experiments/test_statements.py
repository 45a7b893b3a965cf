"""How many ways to the database it takes to create an experiment and to order its trial to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from typing import Any

import pytest

from libs.bus import Bus
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.api.actions.experiments.create import prepare_experiment
from services.api.wire.experiments.experiments import CreateExperimentRequest
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.settings import QueueSettings
from tests.bench.creating.config import CONFIG
from tests.harness.app import new_app
from tests.harness.statements import counted_statements
from tests.integration.scheduler.api import Api

NODE = NodeCapacity(name="node", devices=tuple(Device(id=f"{number:03}") for number in range(8)))
CAPACITY = PoolCapacity(pool="default", backend="process", nodes=(NODE,))


@contextmanager
def at_most(count: float, sent: list[str]) -> Iterator[None]:
    """The beginning and the end of a transaction count too."""
    before = len(sent)
    yield
    statements = sent[before:]
    assert len(statements) <= count, "\n".join(statements)


@pytest.mark.parametrize("searcher", [{"name": "single"}, {"name": "random", "max_trials": 1}])
async def test_new_experiment_and_its_first_trial(own_database_url: str, bus: Bus, searcher: dict[str, Any]) -> None:
    cluster = ClusterConfig(checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"})
    with counted_statements() as sent:
        async with connect_database(DatabaseSettings(url=own_database_url, pool_size=2)) as db:
            api = Api(db, bus)
            engine = ExperimentReconciler(db=db, clock=SystemClock(), cluster=cluster)
            queue = PoolQueue(
                db=db,
                clock=SystemClock(),
                cluster=cluster,
                pool=cluster.resource_pools[0],
                capacity=lambda _pool: CAPACITY,
                ended=lambda _row: None,
                settings=QueueSettings(),
            )
            app = new_app(db, bus, SystemClock(), cluster=cluster)

            async def create(*most: float) -> None:
                prepare, store, search, order, look = most
                with at_most(prepare, sent):
                    request = CreateExperimentRequest(config=CONFIG)
                    await prepare_experiment(app, request, require=lambda _project: None, now=datetime.now(UTC))
                with at_most(store, sent):
                    experiment = await api.create(searcher={**searcher, "metric": "loss"}, slots=1)
                with at_most(search, sent):
                    await engine.reconcile(experiment)
                with at_most(order, sent):
                    assert (await queue.plan_once()).started == 1
                with at_most(look, sent):
                    assert (await queue.plan_once()).was_empty

            await create(*[inf] * 5)  # the driver asks about types once
            # One of those that store reads the project that this test creates in.
            await create(2, 8, 11, 14, 4)
