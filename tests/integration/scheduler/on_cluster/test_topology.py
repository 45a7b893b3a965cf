"""Gangs that stay in one rack, by labels of nodes on a real control plane (docs/reference/scheduling.md 16, B20)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from libs.events.capacity import PoolCapacity
from services.scheduler.orders.topologies import domains_of_nodes
from services.scheduler.plan.nodes.shapes import ShapeTable
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.shaped_nodes import shaped_nodes
from tests.integration.scheduler.on_cluster.conftest import ClusterPool

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.parametrize(
        "cluster_pool", [{"type": "priority", "topology": {"levels": ["resolute-test/rack"]}}], indirect=True
    ),
]

RACK = "resolute-test/rack"


@pytest.fixture
async def racks(cluster_pool: ClusterPool) -> AsyncIterator[None]:
    """Each of the two nodes is a rack of its own."""
    for node in cluster_pool.nodes:
        await cluster_pool.label(node, RACK, node)
    await cluster_pool.launcher.until_capacity(lambda capacity: _racks(capacity) == set(cluster_pool.nodes))
    yield
    for node in cluster_pool.nodes:
        await cluster_pool.label(node, RACK, None)


@pytest.mark.usefixtures("racks")
async def test_a_gang_runs_in_the_rack_that_has_room(cluster_pool: ClusterPool) -> None:
    single = await cluster_pool.gang(4, runs_s=None)
    await cluster_pool.until_running(single, 1)
    gang = await cluster_pool.gang(8, runs_s=None, topology={"required": RACK})
    await cluster_pool.until_running(gang, 2)
    [taken] = await _nodes(cluster_pool, single)
    assert await _nodes(cluster_pool, gang) == set(cluster_pool.nodes) - {taken}
    waiting = await cluster_pool.gang(8, topology={"required": RACK})
    await cluster_pool.until_waiting(waiting, WaitReason.TOPOLOGY)
    assert await cluster_pool.pods(waiting) == []


@pytest.mark.usefixtures("racks")
async def test_what_no_rack_holds_waits_without_a_pod_until_one_does(cluster_pool: ClusterPool) -> None:
    waiting = await cluster_pool.gang(12, topology={"required": RACK})
    await cluster_pool.until_waiting(waiting, WaitReason.NO_SUCH_DOMAIN)
    assert await cluster_pool.pods(waiting) == []
    for node in cluster_pool.nodes:
        await cluster_pool.label(node, RACK, "together")
    await cluster_pool.api.ended(waiting, "COMPLETED")
    [row] = await cluster_pool.api.allocations(waiting)
    assert {place["node"] for place in row["places"]} == set(cluster_pool.nodes)


def _racks(capacity: PoolCapacity) -> set[str]:
    nodes = {node.name: node for node in shaped_nodes(capacity, ShapeTable())}
    return {rack for (rack,) in domains_of_nodes(nodes, (RACK,)).values()}


async def _nodes(pool: ClusterPool, experiment: int) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in await pool.pods(experiment)}
