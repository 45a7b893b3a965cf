"""Placeholders of a pool take nothing from it: what they hold is kept for one of its tasks anyway."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from libs.clock import SystemClock
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.client.objects import ResourceQuota, SlimPod
from services.launcher.backends.kubernetes.manifests.names import PLACEHOLDER_LABEL, launcher_id
from tests.unit.launcher.backends.kubernetes.builders import Listener, capacity_tracker_of, node, quota, slim_pod

GPU = "nvidia.com/gpu"
EIGHT = {GPU: "8", "pods": "110"}


@pytest.fixture
def tracker() -> Iterator[Tracker]:
    found = Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60, listener=Listener())
    yield found
    found.close()


def placeholder(of: str, *, node_name: str = "n1") -> SlimPod:
    pod = slim_pod(f"room-{of}-{node_name}", node_name, {GPU: "4"}, **{PLACEHOLDER_LABEL: launcher_id("c", of)})
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, namespace="a"))


async def test_those_of_the_pool_hold_none_of_its_slots_and_those_of_others_do(tracker: Tracker) -> None:
    capacity_tracker = capacity_tracker_of(tracker)
    capacity_tracker.nodes.on_upsert(node("n1", allocatable=EIGHT))
    capacity_tracker.others.on_upsert(placeholder("default"))
    [found] = (await capacity_tracker.capacity()).nodes
    assert [device.container for device in found.devices] == [None] * 8
    assert found.foreign == {}
    capacity_tracker.others.on_upsert(placeholder("other"))
    [found] = (await capacity_tracker.capacity()).nodes
    assert sum(device.container is not None for device in found.devices) == 4
    assert found.foreign == {GPU: 4, "pods": 1}


async def test_what_a_quota_counts_for_them_is_not_missing_to_tasks(tracker: Tracker) -> None:
    capacity_tracker = capacity_tracker_of(tracker)
    capacity_tracker.nodes.on_upsert(node("n1", allocatable=EIGHT))
    limit = quota({f"requests.{GPU}": "8"}, {f"requests.{GPU}": "4"})
    metadata = msgspec.structs.replace(limit.metadata, namespace="a")
    limited: ResourceQuota = msgspec.structs.replace(limit, metadata=metadata)
    capacity_tracker.quotas.on_upsert(limited)
    assert (await capacity_tracker.capacity()).quota_slots == 4
    capacity_tracker.others.on_upsert(placeholder("default", node_name=""))
    assert (await capacity_tracker.capacity()).quota_slots == 8
    capacity_tracker.others.on_delete(placeholder("default", node_name=""))
    assert (await capacity_tracker.capacity()).quota_slots == 4
