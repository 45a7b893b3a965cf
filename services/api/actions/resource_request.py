"""Check that the slots a task asks for can ever be free in its pool, as far as is known when it is submitted.

Source: docs/reference/experiments.md 1.7 (step 5); docs/reference/scheduling.md 3. Pure.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from libs.cluster.config import ClusterConfig
from libs.cluster.resolution import could_fit, split_in_pool
from libs.errors import InvalidRequest
from libs.events.capacity import PoolCapacity
from services.api.wire.experiments.experiments import LaunchWarning

EXCEEDS: Final = "slots requested exceeds cluster capacity"
UNFULFILLABLE: Final = "request unfulfillable, please try requesting less slots"


class UnfitSlots(Struct, frozen=True):
    """Why nodes of a pool could not hold a request if nothing else ran there."""

    reason: str
    may_change: bool
    """Whether the pool may get other nodes, or takes what is too large for it."""


def check_resources(
    cluster: ClusterConfig,
    capacity: PoolCapacity | None,
    *,
    pool: str,
    slots: int,
    single_pod: bool = False,
    has_fallbacks: bool = False,
) -> list[LaunchWarning]:
    """Warnings about a request that may have to wait for ever; raises InvalidRequest when it certainly would.

    capacity       of the pool, None while its launcher was not seen; nodes that are disabled count, they may come back
    has_fallbacks  it may start in other pools, too
    Where a pool may grow, or no node of its cluster has come yet, the request is accepted with a warning.
    """
    found = unfit_slots(cluster, capacity, pool=pool, slots=slots, single_pod=single_pod)
    if found is None:
        return []
    if not (found.may_change or has_fallbacks):
        raise InvalidRequest(found.reason)
    return [LaunchWarning.CURRENT_SLOTS_EXCEEDED]


def unfit_slots(
    cluster: ClusterConfig, capacity: PoolCapacity | None, *, pool: str, slots: int, single_pod: bool = False
) -> UnfitSlots | None:
    """What the nodes of a pool lack, by slots alone; None where they could hold the request, or nobody knows.

    Raises InvalidRequest where the pool has no pods of such a size, whatever nodes it has.
    """
    if slots == 0:
        return None
    split = split_in_pool(cluster, capacity, pool=pool, slots=slots, single_pod=single_pod)
    if capacity is None or could_fit(split, capacity.nodes):
        return None
    has_none_yet = cluster.resource_manager.is_kubernetes and not capacity.nodes
    may_change = cluster.can_grow(pool) or has_none_yet
    if single_pod:
        return UnfitSlots(UNFULFILLABLE, may_change)  # more nodes of the same size would not help
    return UnfitSlots(EXCEEDS, may_change or not cluster.launch_error)
