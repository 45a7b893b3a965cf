"""Check that the slots a task asks for can ever be free in its pool, as far as is known when it is submitted.

Source: docs/reference/experiments.md 1.7 (step 5); docs/reference/scheduling.md 3. Pure.
"""

from __future__ import annotations

from typing import Final

from libs.cluster.config import ClusterConfig
from libs.cluster.resolution import could_fit, split_in_pool
from libs.errors import InvalidRequest
from libs.events.capacity import PoolCapacity
from services.api.wire.experiments.experiments import LaunchWarning

EXCEEDS: Final = "slots requested exceeds cluster capacity"
UNFULFILLABLE: Final = "request unfulfillable, please try requesting less slots"


def check_resources(
    cluster: ClusterConfig, capacity: PoolCapacity | None, *, pool: str, slots: int, single_pod: bool = False
) -> list[LaunchWarning]:
    """Warnings about a request that may have to wait for ever; raises InvalidRequest when it certainly would.

    capacity  of the pool, None while its launcher was not seen; nodes that are disabled count, they may come back
    Where a pool may grow, or no node of its cluster has come yet, the request is accepted with a warning.
    """
    if slots == 0:
        return []
    split = split_in_pool(cluster, capacity, pool=pool, slots=slots, single_pod=single_pod)
    if capacity is None or could_fit(split, capacity.nodes):
        return []
    has_none_yet = cluster.resource_manager.is_kubernetes and not capacity.nodes
    if cluster.can_grow(pool) or has_none_yet:
        return [LaunchWarning.CURRENT_SLOTS_EXCEEDED]
    if single_pod:
        raise InvalidRequest(UNFULFILLABLE)  # more nodes of the same size would not help
    if cluster.launch_error:
        raise InvalidRequest(EXCEEDS)
    return [LaunchWarning.CURRENT_SLOTS_EXCEEDED]
