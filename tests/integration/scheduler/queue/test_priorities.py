"""New priorities for what runs (docs/reference/kubernetes.md 3.10; docs/reference/scheduling.md 6.1)."""

from __future__ import annotations

from libs.clock import SystemClock
from services.scheduler.experiments.reconciler import ExperimentReconciler
from tests.harness import eventually
from tests.integration.scheduler.world import KUBERNETES, QUICK, World


async def test_trials_in_a_cluster_come_back_with_their_new_priority(world: World) -> None:
    world.cluster = KUBERNETES
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=0, resources=at_priority(60))
        [first] = await w.launcher.running()
        assert priority_of(w, first) == 60
        await w.api.ready(first)
        await w.api.set_priority(experiment, 70)
        await eventually(lambda: _is_asked_to_leave(w, first))
        assert (await w.api.allocation(first))["killed_at"] is None
        await w.api.ack(first)
        await w.launcher.exit(first)
        second = (await w.launcher.running(2))[1]
        assert priority_of(w, second) == 70
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("ACTIVE", 0, 2)
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")
        assert len(w.launcher.specs) == 2


async def test_a_trial_that_cannot_be_asked_yet_is_killed_and_loses_no_restart(world: World) -> None:
    world.cluster = KUBERNETES
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=0, resources=at_priority(60))
        [first] = await w.launcher.running()
        await w.api.set_priority(experiment, 70)
        second = (await w.launcher.running(2))[1]
        assert (await w.api.allocation(first))["kill_reason"] == "priority changed"
        assert priority_of(w, second) == 70
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")


async def test_a_new_priority_is_found_without_a_notification(world: World) -> None:
    world.cluster = KUBERNETES
    async with world.scheduling(QUICK) as w:
        experiment = await w.api.create(resources=at_priority(60))
        [first] = await w.launcher.running()
        await w.api.ready(first)
        await w.api.set_priority(experiment, 70, notify=False)
        await eventually(lambda: _is_asked_to_leave(w, first))


async def test_the_same_priority_changes_nothing(world: World) -> None:
    world.cluster = KUBERNETES
    async with world.scheduling() as w:
        experiment = await w.api.create(resources=at_priority(60))
        [first] = await w.launcher.running()
        await w.api.set_priority(experiment, 60)
        await look_at(w, experiment)
        row = await w.api.allocation(first)
        assert (row["preempted_at"], row["killed_at"]) == (None, None)


async def test_where_pods_have_no_priority_a_new_one_restarts_nothing(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(resources=at_priority(60))
        [first] = await w.launcher.running()
        await w.api.set_priority(experiment, 70)
        await look_at(w, experiment)
        row = await w.api.allocation(first)
        assert (row["preempted_at"], row["killed_at"], row["priority"]) == (None, None, 70)


def at_priority(priority: int) -> dict[str, object]:
    return {"slots_per_trial": 1, "resource_pool": "default", "priority": priority}


def priority_of(world: World, allocation: str) -> int | None:
    spec = world.launcher.specs[allocation].spec
    assert spec is not None
    return spec.priority


async def look_at(world: World, experiment: int) -> None:
    """Have the experiment made what it should be; what the running scheduler does meanwhile is the same."""
    await ExperimentReconciler(db=world.db, clock=SystemClock(), cluster=world.cluster).reconcile(experiment)


async def _is_asked_to_leave(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["preempt_reason"] == "priority changed"
