"""Nodes that an administrator takes out of service and puts back (docs/reference/scheduling.md 11.2)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.events.capacity import Device, NodeCapacity
from libs.events.orders import Order
from libs.telemetry import value
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.settings import EngineSettings, QueueSettings, SchedulerSettings
from tests.harness import eventually
from tests.integration.scheduler.deletion.test_endings import _launch_notebook
from tests.integration.scheduler.world import KUBERNETES, QUICK, World, background

REASON = "node disabled without drain"
NEVER_RESYNCED = SchedulerSettings(queue=QueueSettings(resync_s=600), engine=EngineSettings(resync_s=600, log_wait_s=0))
"""For what has to be thought of in time."""


async def test_disabled_node_is_cleared_and_used_again_when_it_is_enabled(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=0)
        [first] = await w.launcher.running()
        await w.api.disable_node("node0", drain=False)
        await eventually(lambda: _is_over(w, first))
        row = await w.api.allocation(first)
        assert row["kill_reason"] == REASON
        assert row["exit_reason"].startswith("allocation killed after")
        await eventually(lambda: _wait_reasons(w))
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("ACTIVE", 0, 2)
        assert len(w.launcher.specs) == 1
        await w.api.enable_node("node0")
        second = (await w.launcher.running(2))[1]
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")


async def test_task_that_runs_once_ends_with_its_node(world: World) -> None:
    async with world.scheduling() as w:
        notebook = await _launch_notebook(w, workspace=1)
        await w.launcher.running()
        await w.api.disable_node("node0", drain=False)
        await eventually(lambda: _is_over(w, notebook))
        assert (await w.api.allocation(notebook))["kill_reason"] == REASON


async def test_draining_node_finishes_what_it_has_and_starts_nothing(world: World) -> None:
    async with world.scheduling() as w:
        running = await w.api.create()
        [first] = await w.launcher.running()
        await w.api.disable_node("node0", drain=True)
        waiting = await w.api.create()
        await eventually(lambda: _wait_reasons(w))
        assert (await w.api.allocation(first))["killed_at"] is None
        await w.launcher.exit(first)
        await w.api.ended(running, "COMPLETED")
        assert len(w.launcher.specs) == 1
        await w.api.enable_node("node0")
        second = (await w.launcher.running(2))[1]
        await w.launcher.exit(second)
        await w.api.ended(waiting, "COMPLETED")


async def test_other_nodes_are_left_alone_and_orders_name_those_to_avoid(world: World) -> None:
    async with world.scheduling() as w:
        await w.launcher.offer(nodes=2)
        await w.api.disable_node("node1", drain=False)
        await w.api.create()
        [allocation] = await w.launcher.running()
        spec = w.launcher.specs[allocation].spec
        assert spec is not None
        assert spec.blocked_nodes == ("node1",)
        async with background(w.scheduler(QUICK).run()):
            await w.api.disable_node("node2", drain=False)
            await w.api.disable_node("node0", drain=False)
            await eventually(lambda: _is_over(w, allocation))
        assert (await w.api.allocation(allocation))["kill_reason"] == REASON


async def test_in_a_cluster_orders_do_not_name_disabled_nodes(world: World) -> None:
    """A pod is told for life where not to go, and the node may be back before the pod runs."""
    world.cluster = KUBERNETES
    async with world.scheduling() as w:
        await w.launcher.offer(nodes=2)
        await w.api.disable_node("node1", drain=True)
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        await w.api.sql("""UPDATE trials SET blocked_nodes = '["node7"]'""")
        await w.api.activate(experiment)
        [allocation] = await w.launcher.running()
        spec = w.launcher.specs[allocation].spec
        assert spec is not None
        assert spec.blocked_nodes == ("node7",)


async def test_slots_of_another_pool_are_waited_for(world: World) -> None:
    async with world.scheduling() as w:
        theirs = tuple(Device(id=f"{i}", allocation="x.1", container="x", foreign=True) for i in range(8))
        await w.launcher.offer_nodes(NodeCapacity(name="node0", devices=theirs))
        await w.api.create()
        await eventually(lambda: _wait_reasons(w))
        assert await _wait_reasons(w) == [f"{WaitReason.NO_ROOM}: needs 1 free slot; 0 of 8 slots are free"]
        assert _shown_waiting(WaitReason.NO_ROOM) == 1
        await w.launcher.offer()
        await w.launcher.running()
        await eventually(lambda: _shown_waiting(WaitReason.NO_ROOM) == 0)


EXCLUDED = [
    ("of a machine", ClusterConfig(), "ERROR", []),
    ("where more may be launched", ClusterConfig(launch_error=False), "ACTIVE", [WaitReason.NODES_EXCLUDED]),
    ("of a cluster", KUBERNETES, "ACTIVE", [WaitReason.NODES_EXCLUDED]),
]


@pytest.mark.parametrize(("cluster", "state", "reasons"), [case[1:] for case in EXCLUDED], ids=[c[0] for c in EXCLUDED])
async def test_trial_to_which_log_policies_leave_no_node(
    world: World, cluster: ClusterConfig, state: str, reasons: list[str]
) -> None:
    world.cluster = cluster
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=5)
        [first] = await w.launcher.running()
        await w.api.sql("""UPDATE trials SET blocked_nodes = '["node0"]'""")
        await w.launcher.exit(first, 1)
        await eventually(lambda: _has_reacted(w, reasons))
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"]) == (state, 1)
        assert list(w.launcher.specs) == [first]
        assert ("node0" in (trial["error"] or "")) is not bool(reasons)


async def test_trial_whose_nodes_are_excluded_waits_for_word_of_the_others(world: World) -> None:
    experiment = await world.api.create()
    engine = ExperimentReconciler(db=world.db, clock=SystemClock(), cluster=world.cluster, capacity=lambda _: None)
    await engine.reconcile(experiment)
    await world.api.sql("DELETE FROM allocations")
    await world.api.sql("""UPDATE trials SET blocked_nodes = '["node7"]'""")
    assert (await engine.reconcile(experiment)).requeue_after_s is not None
    assert await world.api.allocations() == []
    async with world.scheduling() as w:
        await w.launcher.running()


async def test_disabled_node_is_cleared_without_a_notification(world: World) -> None:
    await world.launcher.offer()
    await world.api.create()
    async with background(world.scheduler(QUICK).run()):
        [row] = await eventually(world.api.allocations)
        await eventually(lambda: _has_slots(world, row["allocation_id"]))
        await world.api.disable_node("node0", drain=False)
        await eventually(lambda: _is_killed(world, row["allocation_id"]))


async def test_launcher_that_refuses_everything_uses_up_few_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # How it grows is tested elsewhere; here the second shall not be over before the test has looked.
    pauses = {1: timedelta(seconds=1)}
    monkeypatch.setattr(
        "services.scheduler.experiments.trial_backoff.pause_after", lambda ends: pauses.get(ends, timedelta(hours=1))
    )

    async def refuse(order: Order) -> None:
        await world.launcher.see(order.allocation, "TERMINATED", failure="ABORTED", message="no")

    async with world.scheduling(NEVER_RESYNCED) as w:
        w.launcher.on_run = refuse
        experiment = await w.api.create(max_restarts=0)
        await w.launcher.running(2)
        [trial] = await w.api.trials(experiment)
        assert trial["restarts"] == 0
        assert trial["transient_ends"] in (1, 2)
        [waited] = await w.api.sql(
            "SELECT extract(epoch FROM max(requested_at) - min(end_time))::float FROM allocations"
        )
        assert 1 <= waited < 20
        await eventually(lambda: _ends(w, 2))
        # The pause outlives the scheduler, and notifications do not shorten it.
        async with background(w.scheduler(QUICK).run()):
            for _ in range(5):
                await w.api.report_progress(trial["id"], 0.1)
            await eventually(lambda: _heard(w))
        assert len(await w.api.allocations()) == 2
        await w.api.sql("UPDATE trials SET not_before = now()")
        async with background(w.scheduler(QUICK).run()):
            await w.launcher.running(3)


async def _is_over(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["released_at"] is not None


async def _is_killed(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["killed_at"] is not None


async def _has_slots(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["assigned_at"] is not None


async def _has_reacted(w: World, reasons: list[str]) -> bool:
    return await w.api.sql("SELECT restarts FROM trials") == [1] and await _wait_reasons(w) == reasons


def _shown_waiting(reason: WaitReason) -> float:
    return value("resolute_scheduler_queued", pool="default", reason=reason.name.lower())


async def _wait_reasons(w: World) -> list[str]:
    return [row["wait_reason"] for row in await w.api.allocations() if row["wait_reason"]]


async def _ends(w: World, count: int) -> bool:
    return await w.api.sql("SELECT transient_ends FROM trials") == [count]


async def _heard(w: World) -> bool:
    return await w.api.sql("SELECT count(*) FROM searcher_events") == [0]
