"""New priorities for what runs: plans go by them at once, and nothing is started again. Source:
docs/reference/scheduling.md 16 (B14)."""

from __future__ import annotations

import pytest

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig, SchedulerConfig
from services.scheduler.experiments.reconciler import ExperimentReconciler
from tests.harness import eventually
from tests.integration.scheduler.world import KUBERNETES, World

PREEMPTS = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes"),
    resource_pools=(PoolConfig(pool_name="default", scheduler=SchedulerConfig(preemption=True, min_runtime=0)),),
)


@pytest.mark.parametrize("in_a_cluster", [True, False])
async def test_a_new_priority_restarts_nothing(world: World, in_a_cluster: bool) -> None:
    if in_a_cluster:
        world.cluster = KUBERNETES
    async with world.scheduling() as w:
        experiment = await w.api.create(resources=at_priority(60))
        [first] = await w.launcher.running()
        await w.api.set_priority(experiment, 70)
        await look_at(w, experiment)
        row = await w.api.allocation(first)
        assert (row["preempted_at"], row["killed_at"], row["priority"]) == (None, None, 70)
        await w.launcher.exit(first)
        await w.api.ended(experiment, "COMPLETED")
        assert len(w.launcher.specs) == 1


async def test_plans_go_by_the_new_priority_of_what_runs(world: World) -> None:
    world.cluster = PREEMPTS
    async with world.scheduling() as w:
        first = await w.api.create(resources=at_priority(60, slots=4))
        second = await w.api.create(resources=at_priority(60, slots=4))
        running = await w.launcher.running(2)
        for allocation in running:
            await w.api.ready(allocation)
        # Larger is more important here: but for its new priority, the second would leave.
        await w.api.set_priority(second, 90)
        await w.api.create(resources=at_priority(80, slots=4))
        leaving = (await w.api.allocations(first))[0]["allocation_id"]
        await eventually(lambda: _is_asked_to_leave(w, leaving))
        stays = (await w.api.allocations(second))[0]
        assert (stays["preempted_at"], stays["killed_at"]) == (None, None)


def at_priority(priority: int, *, slots: int = 1) -> dict[str, object]:
    return {"slots_per_trial": slots, "resource_pool": "default", "priority": priority}


async def look_at(world: World, experiment: int) -> None:
    """Have the experiment made what it should be; what the running scheduler does meanwhile is the same."""
    await ExperimentReconciler(db=world.db, clock=SystemClock(), cluster=world.cluster).reconcile(experiment)


async def _is_asked_to_leave(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["preempted_at"] is not None
