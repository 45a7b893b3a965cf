"""Gangs on a real control plane: they start whole, or wait (docs/reference/scheduling.md 16, B1 and B16)."""

from __future__ import annotations

import asyncio
import os
import re
from uuid import uuid4

import pytest

from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.scheduler.on_cluster.conftest import ClusterPool

pytestmark = pytest.mark.cluster

ROUNDS = int(os.environ.get("RESOLUTE_TEST_GANG_ROUNDS", "3"))
TRANSIENT = "SELECT count(*) FROM allocations WHERE exit_kind = 'TRANSIENT'"


async def test_two_gangs_of_twelve_slots_on_sixteen_run_one_after_the_other(cluster_pool: ClusterPool) -> None:
    """With pods in the order of their creation each of them could get half of what it needs."""
    for _ in range(ROUNDS):
        both = await asyncio.gather(cluster_pool.gang(12), cluster_pool.gang(12))
        for experiment in both:
            await cluster_pool.api.ended(experiment, "COMPLETED")
        rows = [row for experiment in both for row in await cluster_pool.api.allocations(experiment)]
        assert [row["exit_kind"] for row in rows] == ["", ""]


async def test_a_gang_that_needs_more_than_there_is_waits_without_a_pod(cluster_pool: ClusterPool) -> None:
    waiting = await cluster_pool.gang(20)
    await cluster_pool.until_waiting(waiting, WaitReason.TOO_LARGE)
    assert await cluster_pool.pods(waiting) == []


async def test_a_gang_with_a_node_selector_waits_for_nodes_without_a_pod(cluster_pool: ClusterPool) -> None:
    rack = f"resolute-test/{uuid4().hex}"
    await cluster_pool.label(cluster_pool.nodes[0], rack, "a")
    waiting = await cluster_pool.gang(16, selector={rack: "a"})
    await eventually(lambda: _has_a_reason(cluster_pool, waiting))
    assert await cluster_pool.pods(waiting) == []
    await cluster_pool.label(cluster_pool.nodes[1], rack, "a")
    await cluster_pool.api.ended(waiting, "COMPLETED")
    [row] = await cluster_pool.api.allocations(waiting)
    assert row["exit_kind"] == ""
    for node in cluster_pool.nodes:
        await cluster_pool.label(node, rack, None)


async def test_a_gang_whose_place_was_taken_goes_back_and_runs_when_it_is_free(cluster_pool: ClusterPool) -> None:
    # Without its launcher the scheduler plans on what was reported before.
    await cluster_pool.launcher.kill()
    foreign = await cluster_pool.take(cluster_pool.nodes[0], 6)
    gang = await cluster_pool.gang(16, runs_s=None)
    await eventually(lambda: _is_assigned(cluster_pool, gang))
    await cluster_pool.start_launcher_that_takes_gangs_back()
    await cluster_pool.until_waiting(gang, WaitReason.FOREIGN_PODS)
    assert await cluster_pool.api.sql(TRANSIENT) == [1]
    [first, _] = await cluster_pool.api.allocations(gang)
    # On a busy machine, fewer of them than there is room for.
    assert re.match(r"not all of its pods found a place: [0-2] of 4 within 3 seconds", first["kill_reason"])
    await cluster_pool.launcher.namespace.api.delete(foreign, {"gracePeriodSeconds": 0})
    await cluster_pool.until_running(gang, 4)
    [trial] = await cluster_pool.api.trials(gang)
    assert trial["restarts"] == 0


async def test_a_gang_whose_node_was_drained_while_it_started_goes_back(cluster_pool: ClusterPool) -> None:
    await cluster_pool.launcher.kill()
    await cluster_pool.cordon(cluster_pool.nodes[0])
    gang = await cluster_pool.gang(16, runs_s=None)
    await eventually(lambda: _is_assigned(cluster_pool, gang))
    await cluster_pool.start_launcher_that_takes_gangs_back()
    await cluster_pool.until_waiting(gang, WaitReason.OUT_OF_SERVICE)
    assert await cluster_pool.api.sql(TRANSIENT) == [1]
    await cluster_pool.cordon(cluster_pool.nodes[0], closed=False)
    await cluster_pool.until_running(gang, 4)


async def test_half_of_a_gang_does_not_start_when_a_node_is_drained(cluster_pool: ClusterPool) -> None:
    """The end of the pods that are evicted is heard before the state of their node."""
    running = await cluster_pool.gang(16, runs_s=None)
    await cluster_pool.until_running(running, 4)
    waiting = await cluster_pool.gang(16)
    await cluster_pool.until_waiting(waiting, WaitReason.NO_ROOM)
    await cluster_pool.cordon(cluster_pool.nodes[0])
    namespace = cluster_pool.launcher.namespace
    for pod in await cluster_pool.pods(running):
        if pod["spec"]["nodeName"] == cluster_pool.nodes[0]:
            await namespace.api.delete(namespace.paths.pod(pod["metadata"]["name"]), {"gracePeriodSeconds": 0})
    await cluster_pool.api.ended(running, "ERROR")
    await cluster_pool.until_waiting(waiting, WaitReason.OUT_OF_SERVICE)
    assert await cluster_pool.pods(waiting) == []
    await cluster_pool.cordon(cluster_pool.nodes[0], closed=False)
    await cluster_pool.api.ended(waiting, "COMPLETED")
    [row] = await cluster_pool.api.allocations(waiting)
    assert row["exit_kind"] == ""


async def test_small_tasks_go_to_the_node_that_is_in_use(cluster_pool: ClusterPool) -> None:
    """By itself, the scheduler of a cluster spreads them."""
    experiments = [await cluster_pool.gang(2, runs_s=None) for _ in range(4)]
    for experiment in experiments:
        await cluster_pool.until_running(experiment, 1)
    nodes = {pod["spec"]["nodeName"] for experiment in experiments for pod in await cluster_pool.pods(experiment)}
    assert len(nodes) == 1
    rows = [row for experiment in experiments for row in await cluster_pool.api.allocations(experiment)]
    assert {place["node"] for row in rows for place in row["places"]} == nodes


async def _is_assigned(pool: ClusterPool, experiment: int) -> bool:
    return any(row["assigned_at"] is not None for row in await pool.api.allocations(experiment))


async def _has_a_reason(pool: ClusterPool, experiment: int) -> bool:
    return any(row["wait_reason"] for row in await pool.api.allocations(experiment))
