"""Requests for slots that can never be fulfilled are refused or warned of."""

from __future__ import annotations

import pytest

from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig
from libs.errors import InvalidRequest
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.api.actions.resource_request import check_resources
from services.api.wire.experiments.experiments import (
    LaunchWarning,
)


def pool(*slots: int, backend: str = "process") -> PoolCapacity:
    nodes = (
        NodeCapacity(name=f"n{number}", devices=tuple(Device(id=str(device)) for device in range(count)), enabled=False)
        for number, count in enumerate(slots)
    )
    return PoolCapacity(pool="default", backend=backend, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("capacity", "per_pod", "slots", "single", "message"),
    [
        (pool(4, 4), None, 4, False, ""),
        (pool(4, 4), None, 8, False, "exceeds cluster capacity"),
        (pool(4, 4), 4, 8, False, ""),
        (pool(2, 4), None, 4, True, ""),
        (pool(2, 4), None, 5, True, "request unfulfillable, please try requesting less slots"),
        (pool(4, 4), 4, 12, False, "exceeds cluster capacity"),
        (pool(8), 4, 8, False, ""),
        (pool(8), 4, 7, False, "multiple of max_slots_per_pod"),
        (pool(8), 4, 8, True, "on single pod"),
        (pool(), None, 0, False, ""),
        (pool(), None, 1, False, "exceeds cluster capacity"),
        (None, None, 99, False, ""),
    ],
)
def test_request_that_can_never_run(
    capacity: PoolCapacity | None, per_pod: int | None, slots: int, single: bool, message: str
) -> None:
    strict = ClusterConfig(resource_manager=ResourceManagerConfig(max_slots_per_pod=per_pod))
    if not message:
        assert check_resources(strict, capacity, pool="default", slots=slots, single_pod=single) == []
        return
    with pytest.raises(InvalidRequest, match=message):
        check_resources(strict, capacity, pool="default", slots=slots, single_pod=single)


def on_kubernetes(*, can_grow: bool | None = None, launch_error: bool = True) -> ClusterConfig:
    return ClusterConfig(
        resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=8),
        resource_pools=(PoolConfig(pool_name="default", can_grow=can_grow),),
        launch_error=launch_error,
    )


ONE = pool(1, backend="kubernetes")


@pytest.mark.parametrize(
    ("cluster", "capacity", "slots", "single"),
    [
        (on_kubernetes(), ONE, 8, True),
        (on_kubernetes(), ONE, 16, False),
        (on_kubernetes(can_grow=True), pool(backend="kubernetes"), 1, False),
        (on_kubernetes(can_grow=False), pool(backend="kubernetes"), 1, False),
        (on_kubernetes(can_grow=False, launch_error=False), ONE, 16, False),
        (ClusterConfig(resource_pools=(PoolConfig(pool_name="default", can_grow=True),)), pool(1), 2, False),
    ],
)
def test_a_pool_that_may_grow_or_has_no_node_yet_takes_what_is_too_large_with_a_warning(
    cluster: ClusterConfig, capacity: PoolCapacity, slots: int, single: bool
) -> None:
    found = check_resources(cluster, capacity, pool="default", slots=slots, single_pod=single)
    assert found == [LaunchWarning.CURRENT_SLOTS_EXCEEDED]


@pytest.mark.parametrize(
    ("slots", "single", "message"),
    [
        (1, True, ""),
        (2, True, "request unfulfillable, please try requesting less slots"),
        (16, False, "slots requested exceeds cluster capacity"),
    ],
)
def test_a_pool_of_a_cluster_that_cannot_grow_refuses_what_is_larger_than_its_nodes(
    slots: int, single: bool, message: str
) -> None:
    """Nodes that are cordoned or not ready count, as those of the capacity here are."""
    cluster = on_kubernetes(can_grow=False)
    if not message:
        assert check_resources(cluster, ONE, pool="default", slots=slots, single_pod=single) == []
        return
    with pytest.raises(InvalidRequest, match=message):
        check_resources(cluster, ONE, pool="default", slots=slots, single_pod=single)


def test_request_that_may_never_run_is_a_warning_where_the_cluster_wants_that() -> None:
    warnings = check_resources(ClusterConfig(launch_error=False), pool(1), pool="default", slots=2)
    assert warnings == [LaunchWarning.CURRENT_SLOTS_EXCEEDED]
    with pytest.raises(InvalidRequest, match="request unfulfillable"):
        check_resources(ClusterConfig(launch_error=False), pool(1), pool="default", slots=2, single_pod=True)
