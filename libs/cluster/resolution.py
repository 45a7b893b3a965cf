"""Chooses the pool of a task, and checks that it could ever run there (docs/reference/scheduling.md 3). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from libs.cluster.config import ClusterConfig
from libs.cluster.pod_sizes import MOST_DIVIDED, equal_sizes, usable_slots
from libs.errors import InvalidRequest
from libs.events.capacity import NodeCapacity, PoolCapacity


class PodSplit(Struct, frozen=True):
    num_pods: int
    """At least, where plans divide the slots."""
    slots_per_pod: int
    """At most, where plans divide the slots."""
    divided_slots: int = 0
    """Slots over all pods where plans divide them; 0 where pods are alike."""


def resolve_pool(
    config: ClusterConfig,
    *,
    name: str,
    slots: int,
    workspace_compute: str = "",
    workspace_aux: str = "",
    workspace_id: int | None = None,
    unavailable: Collection[str] = (),
) -> str:
    """The pool of a task that asked for ``name`` ("" for the default) and ``slots``.

    workspace_id  for the message, where a user reads it
    unavailable   pools that are bound to other workspaces only
    Raises InvalidRequest when there is no such pool, or no default one.
    """
    manager = config.resource_manager
    if not name:
        name = (
            (workspace_aux or manager.default_aux_resource_pool)
            if slots == 0
            else (workspace_compute or manager.default_compute_resource_pool)
        )
    if not name:
        raise InvalidRequest("no default resource pool set")
    if config.pool(name) is None or name in unavailable:
        where = "" if workspace_id is None else f" or is not available to workspace ID {workspace_id}"
        raise InvalidRequest(f"resource pool {name} does not exist{where}")
    return name


def split_slots(
    slots: int, max_slots_per_pod: int | None, *, single_pod: bool = False, divides: bool = False
) -> PodSplit:
    """How many pods of how many slots make up ``slots`` (docs/reference/harness-protocol.md 3.1).

    ``max_slots_per_pod`` None means that nothing limits a pod. Raises InvalidRequest when no split exists.
    divides  plans divide what is too much for one pod, so that any number of slots will do
    """
    if slots <= 0:
        return PodSplit(1, max(slots, 0))
    if max_slots_per_pod is None or slots <= max_slots_per_pod:
        return PodSplit(1, slots)
    if single_pod:
        raise InvalidRequest(
            "validating resources: invalid resource request: "
            f"slots ({slots}) must be < max_slots_per_pod ({max_slots_per_pod}) on single pod"
        )
    if divides and max_slots_per_pod > 0:
        if slots > MOST_DIVIDED:
            raise InvalidRequest(
                "validating resources: invalid resource request: "
                f"slots ({slots}) must be at most {MOST_DIVIDED} in a pool with allow_heterogeneous_fits"
            )
        return PodSplit(-(-slots // max_slots_per_pod), max_slots_per_pod, slots)
    if max_slots_per_pod == 0 or slots % max_slots_per_pod:
        raise InvalidRequest(
            "validating resources: invalid resource request: "
            f"slots ({slots}) must be < or a multiple of max_slots_per_pod ({max_slots_per_pod})"
        )
    return PodSplit(slots // max_slots_per_pod, max_slots_per_pod)


def split_in_pool(
    config: ClusterConfig, capacity: PoolCapacity | None, *, pool: str, slots: int, single_pod: bool = False
) -> PodSplit:
    """How many pods of how many slots make up ``slots`` in ``pool``. Raises InvalidRequest when no split exists.

    capacity  of the pool, None while its launcher was not seen; one that makes no uneven pods gets none
    """
    divides = config.divides_slots(pool) and (capacity is None or capacity.uneven_pods)
    return split_slots(slots, config.max_slots_per_pod(pool), single_pod=single_pod, divides=divides)


def could_fit(split: PodSplit, nodes: Iterable[NodeCapacity], *, excluded: Collection[str] = ()) -> bool:
    """Whether all pods would find a place on ``nodes`` if nothing else ran; those that are disabled may come back.

    excluded  names of nodes that they must not run on; a pod without slots fits on any other
    """
    each = split.slots_per_pod
    if split.divided_slots:
        slots = [node.slots for node in nodes if node.name not in excluded]
        return sum(usable_slots(free, each) for free in slots) >= split.divided_slots or any(
            sum(free // size for free in slots) >= split.divided_slots // size
            for size in equal_sizes(split.divided_slots, each)
        )
    places = (node.slots // each if each else split.num_pods for node in nodes if node.name not in excluded)
    return sum(places) >= split.num_pods
