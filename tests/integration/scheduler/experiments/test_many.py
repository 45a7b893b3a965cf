"""More of everything than one statement takes arguments (32,767)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.scheduler.deletion.experiments import ExperimentDeletion
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.settings import QueueSettings
from tests.integration.scheduler.world import World

MANY: Final = 33_000


async def test_all_of_many_are_told_why_they_wait(world: World) -> None:
    await _tasks(world, "NOTEBOOK")
    await world.api.sql(
        "INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at)"
        " SELECT task_id || '.1', task_id, 'j', 'x', 'default', 9, 'PENDING', now() FROM tasks"
    )
    nodes = (NodeCapacity(name="node0", devices=(Device(id="000"),)),)
    cluster = ClusterConfig()
    queue = PoolQueue(
        db=world.db,
        clock=SystemClock(),
        cluster=cluster,
        pool=cluster.resource_pools[0],
        capacity=lambda pool: PoolCapacity(pool=pool, backend="process", nodes=nodes),
        ended=lambda _: None,
        settings=QueueSettings(),
    )
    assert (await queue.plan_once()).started == 0
    assert await world.api.sql("SELECT DISTINCT wait_reason FROM allocations") == [
        "the resource pool is too small for it, even when empty: needs 9 slots on one node; the largest node has 1"
    ]


async def test_experiment_of_many_tasks_can_be_deleted(world: World) -> None:
    experiment = await world.api.create(activate=False)
    await _tasks(world, "TRIAL", experiment)
    await world.api.sql("UPDATE experiments SET state = 'DELETING', deletion_tasks = '[]'")
    deletion = ExperimentDeletion(db=world.db, clock=SystemClock(), cluster=world.cluster, log_wait=timedelta())
    await deletion.reconcile(experiment)
    assert await world.api.experiment(experiment) is None
    assert await world.api.sql("SELECT count(*) FROM tasks") == [0]


async def test_search_of_many_trials_begins(world: World) -> None:
    searcher = {"name": "random", "metric": "loss", "max_trials": MANY, "max_concurrent_trials": 0}
    experiment = await world.api.create(
        activate=False, searcher=searcher, hyperparameters={"lr": {"type": "double", "minval": 0, "maxval": 1}}
    )
    engine = ExperimentReconciler(db=world.db, clock=SystemClock(), cluster=world.cluster)
    await engine.reconcile(experiment)
    await engine.reconcile(experiment)
    assert await world.api.sql("SELECT count(*) FROM trials") == [MANY]


async def _tasks(world: World, task_type: str, experiment: int | None = None) -> None:
    await world.api.sql(
        "INSERT INTO tasks (task_id, task_type, job_id, experiment_id, owner_id, start_time)"
        f" SELECT 't' || n, :type, 'j', CAST(:experiment AS bigint), 2, now() FROM generate_series(1, {MANY}) n",
        type=task_type,
        experiment=experiment,
    )
    # Statistics may be those of an earlier test, by which looking at the whole table is cheaper than a key.
    await world.api.sql("ANALYZE tasks")
