"""Slots in pods of different sizes, from the queue to the nodes (docs/reference/scheduling.md 16, B5)."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json
from tests.integration.scheduler.on_cluster.conftest import ClusterPool

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.parametrize("cluster_pool", [{"allow_heterogeneous_fits": True}], indirect=True),
]


def gpus_of(pod: Json) -> int:
    (main,) = [each for each in pod["spec"]["containers"] if each["name"] == "determined-container"]
    return int(main["resources"]["limits"]["nvidia.com/gpu"])


async def test_any_number_of_slots_starts_whole_or_waits(cluster_pool: ClusterPool) -> None:
    """Eleven of sixteen slots, and nine: one after the other, as many times as it takes."""
    for _ in range(3):
        both = await asyncio.gather(cluster_pool.gang(11), cluster_pool.gang(9))
        for experiment in both:
            await cluster_pool.api.ended(experiment, "COMPLETED")
        rows = [row for experiment in both for row in await cluster_pool.api.allocations(experiment)]
        assert [row["exit_kind"] for row in rows] == ["", ""]


async def test_pods_take_what_is_left_of_the_nodes(cluster_pool: ClusterPool) -> None:
    large = await cluster_pool.gang(11, runs_s=None)
    await cluster_pool.until_running(large, 3)
    pods = await cluster_pool.pods(large)
    assert sorted(map(gpus_of, pods)) == [3, 4, 4]
    # Five are left, of one node or of both.
    waiting = await cluster_pool.gang(6)
    await cluster_pool.until_waiting(waiting, WaitReason.NO_ROOM)
    assert await cluster_pool.pods(waiting) == []
    used: Counter[str] = Counter()
    for pod in pods:
        used[pod["spec"]["nodeName"]] += gpus_of(pod)
    assert all(count <= 8 for count in used.values())
    await cluster_pool.restart_scheduler()
    await cluster_pool.api.kill(large)
    await cluster_pool.api.ended(waiting, "COMPLETED")

    async def is_gone() -> bool:
        return not await cluster_pool.pods(large)

    await eventually(is_gone)
