"""A pool that grows on a real control plane; the test is its autoscaler (docs/reference/scheduling.md 16, B9)."""

from __future__ import annotations

import pytest

from services.launcher.backends.kubernetes.manifests.names import PLACEHOLDER_LABEL
from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json
from tests.integration.scheduler.on_cluster.conftest import ClusterPool

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("cluster_pool", [{"growth": {"deadline": 3600}}], indirect=True)
async def test_the_missing_nodes_are_asked_for_and_the_gang_starts_on_them(cluster_pool: ClusterPool) -> None:
    gang = await cluster_pool.gang(24, runs_s=None)
    await cluster_pool.until_waiting(gang, WaitReason.POOL_GROWING)
    await eventually(lambda: _count_unschedulable(cluster_pool, 2), every_s=0.1)
    [pod, _] = await _placeholders(cluster_pool)
    assert pod["spec"]["priority"] == -10
    assert pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "4"
    # A smaller one gets none of the places that are held, nor of the node that comes.
    other = await cluster_pool.gang(4, runs_s=None)
    await cluster_pool.until_waiting(other, WaitReason.NO_ROOM)
    async with cluster_pool.another_node() as node:
        await cluster_pool.until_running(gang, 6)
        await eventually(lambda: _hold_room_for(cluster_pool, other), every_s=0.1)
        where = [pod["spec"]["nodeName"] for pod in await cluster_pool.pods(gang)]
        assert sorted(where) == sorted([*cluster_pool.nodes, node] * 2)
        assert await cluster_pool.pods(other) == []
        for experiment in (gang, other):
            await cluster_pool.api.kill(experiment)
        await eventually(lambda: _is_gone(cluster_pool, gang), every_s=0.1)


@pytest.mark.parametrize("cluster_pool", [{"growth": {"deadline": 3600}}], indirect=True)
async def test_a_node_that_came_is_held_against_pods_of_others_until_the_gang_starts(cluster_pool: ClusterPool) -> None:
    gang = await cluster_pool.gang(32, runs_s=None)
    await eventually(lambda: _count_unschedulable(cluster_pool, 4), every_s=0.1)
    async with cluster_pool.another_node() as node:
        await eventually(lambda: _count_bound(cluster_pool, node, 2), every_s=0.1)
        await cluster_pool.until_waiting(gang, WaitReason.POOL_GROWING)
        assert await cluster_pool.pods(gang) == []
        await cluster_pool.launcher.kill()  # nothing is lost with it
        await cluster_pool.launcher.start()
        async with cluster_pool.another_node() as last:
            await cluster_pool.until_running(gang, 8)
            assert {node, last} < {pod["spec"]["nodeName"] for pod in await cluster_pool.pods(gang)}
            await cluster_pool.api.kill(gang)
            await eventually(lambda: _is_gone(cluster_pool, gang), every_s=0.1)


@pytest.mark.parametrize("cluster_pool", [{"growth": {"deadline": 3}}], indirect=True)
async def test_nodes_that_do_not_come_are_given_up(cluster_pool: ClusterPool) -> None:
    gang = await cluster_pool.gang(24)
    await cluster_pool.until_waiting(gang, WaitReason.POOL_GROWING)
    await cluster_pool.until_waiting(gang, WaitReason.TOO_LARGE)
    await eventually(lambda: _count_unschedulable(cluster_pool, 0), every_s=0.1)
    await eventually(lambda: _says(cluster_pool, gang, "the cluster has not added nodes in time"), every_s=0.1)


async def _placeholders(cluster_pool: ClusterPool) -> list[Json]:
    return await cluster_pool.launcher.namespace.pods(PLACEHOLDER_LABEL)


async def _count_unschedulable(cluster_pool: ClusterPool, count: int) -> bool:
    """What makes an autoscaler add nodes."""
    pods = await _placeholders(cluster_pool)
    reasons = [each.get("reason") for pod in pods for each in pod["status"].get("conditions", ())]
    return len(pods) == count and reasons.count("Unschedulable") == count


async def _count_bound(cluster_pool: ClusterPool, node: str, count: int) -> bool:
    pods = await _placeholders(cluster_pool)
    return [pod["spec"].get("nodeName") for pod in pods].count(node) == count


async def _hold_room_for(cluster_pool: ClusterPool, experiment: int) -> bool:
    """The next in the queue is tried at once."""
    rows = {row["allocation_id"] for row in await cluster_pool.api.allocations(experiment)}
    held = {pod["metadata"]["annotations"]["resolute/allocation"] for pod in await _placeholders(cluster_pool)}
    return held == rows


async def _says(cluster_pool: ClusterPool, experiment: int, text: str) -> bool:
    return any(text in row["wait_reason"] for row in await cluster_pool.api.allocations(experiment))


async def _is_gone(cluster_pool: ClusterPool, experiment: int) -> bool:
    return not await cluster_pool.pods(experiment)
