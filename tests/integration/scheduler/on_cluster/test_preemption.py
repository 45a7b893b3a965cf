"""Preemption on a real control plane outlives the scheduler that began it (docs/reference/scheduling.md 16, B15)."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.harness import eventually
from tests.integration.scheduler.on_cluster.conftest import ClusterPool

pytestmark = pytest.mark.cluster

PREEMPTS = {"type": "priority", "preemption": True, "min_runtime": 0}


@pytest.mark.parametrize("cluster_pool", [PREEMPTS], indirect=True, ids=["preempts"])
async def test_a_scheduler_that_takes_over_changes_neither_victim_nor_deadline(cluster_pool: ClusterPool) -> None:
    for _ in range(2):
        await _start_half(cluster_pool)
    urgent = await cluster_pool.gang(8, priority=90)
    before = await eventually(lambda: _asked(cluster_pool))
    await cluster_pool.restart_scheduler()
    # The new one has planned the pool with what was there when this has been looked at.
    another = await cluster_pool.gang(20)
    await eventually(lambda: _has_a_reason(cluster_pool, another))
    assert await _asked(cluster_pool) == before
    [victim] = before
    await cluster_pool.api.ack(victim)
    namespace = cluster_pool.launcher.namespace
    for pod in await namespace.pods(f"determined={victim}"):
        await namespace.api.delete(namespace.paths.pod(pod["metadata"]["name"]), {"gracePeriodSeconds": 0})
    await cluster_pool.api.ended(urgent, "COMPLETED")
    assert list(await _asked(cluster_pool)) == [victim]


async def _start_half(pool: ClusterPool) -> None:
    """A trial of half of the pool, that can be asked to leave."""
    experiment = await pool.gang(8, runs_s=None)
    await pool.until_running(experiment, 2)
    [row] = await pool.api.allocations(experiment)
    await pool.api.ready(row["allocation_id"])


async def _asked(pool: ClusterPool) -> dict[str, datetime]:
    """Who was asked to leave, until when."""
    rows = await pool.api.allocations()
    return {row["allocation_id"]: row["preempt_deadline"] for row in rows if row["preempted_at"] is not None}


async def _has_a_reason(pool: ClusterPool, experiment: int) -> bool:
    return any(row["wait_reason"] for row in await pool.api.allocations(experiment))
