"""Slots of the pods of allocations, which may differ where a plan divides them: which may, and who holds what then.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from libs.cluster.config import ClusterConfig
from libs.cluster.pod_sizes import MOST_DIVIDED
from libs.events.capacity import PoolCapacity
from services.scheduler.allocations.pod_nodes import nodes_of_pods


class PoolDivision(Struct, frozen=True):
    """How a pool divides slots."""

    most: int | None
    """Slots of one pod; None where nothing limits them."""
    divides: bool
    """Of whatever needs several pods. Otherwise only of what was accepted when that was so, and cannot be divided into
    equal pods."""
    can_differ: bool
    """Whether the launcher makes pods of different sizes."""

    def most_per_pod(self, row: Mapping[Any, Any]) -> int:
        """Slots of one pod of an allocation at most; 0 where its pods are alike, and are what ``num_pods`` says."""
        if row["num_pods"] < 2 or not (self.divides or self.is_uneven(row)):
            return 0
        return self.most or row["slots"]

    def is_uneven(self, row: Mapping[Any, Any]) -> bool:
        """Whether its pods cannot be alike."""
        return bool(row["slots"] % row["num_pods"])

    def has_to_wait(self, row: Mapping[Any, Any]) -> bool:
        """Whether nobody could run it at present."""
        return self.is_uneven(row) and not self.can_differ


def division_of(cluster: ClusterConfig, pool: str, capacity: PoolCapacity | None) -> PoolDivision:
    can_differ = capacity is None or capacity.uneven_pods
    return PoolDivision(
        most=cluster.max_slots_per_pod(pool),
        divides=cluster.divides_slots(pool) and can_differ,
        can_differ=can_differ,
    )


def planned_pods(*, slots: int, num_pods: int, most_per_pod: int) -> tuple[tuple[int, ...], int]:
    """``pods`` and ``most_per_pod`` as plans take them. What has more pods, or slots to divide, than any cluster is one
    pod of all of its slots, which no node has room for: a plan that went through them would not come to an end."""
    if (slots if most_per_pod else num_pods) > MOST_DIVIDED:
        return (slots,), 0
    return ((1,) * slots if most_per_pod else (slots // num_pods,) * num_pods), most_per_pod


def smallest_pod(cluster: ClusterConfig, pool: str, *, slots: int, num_pods: int) -> int:
    """Slots of the smallest pod that an allocation may have: what any node must have to be of use to it."""
    is_divided = num_pods > 1 and (cluster.divides_slots(pool) or bool(slots % num_pods))
    return 1 if is_divided else slots // num_pods


def uneven_sizes(places: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Slots of each place where they differ; else ()."""
    sizes = tuple(place["slots"] for place in places)
    return sizes if len(set(sizes)) > 1 else ()


def held_pods(row: Mapping[Any, Any]) -> list[tuple[str, int]]:
    """Node and slots of each pod of an allocation that has not ended; a node may be unknown.

    row  its ``slots``, ``num_pods``, ``pods`` and ``places``
    """
    num_pods, pods, places = row["num_pods"], row["pods"], row["places"]
    each, more = divmod(row["slots"], num_pods)
    if not uneven_sizes(places):
        nodes = nodes_of_pods(num_pods=num_pods, pods=pods, places=places)
        return [(node, each + (rank < more)) for rank, node in enumerate(nodes)]
    left = [(place["node"], place["slots"]) for place in places]
    found = []
    for pod in pods:
        node, slots = _take(left, node=pod.get("node", ""), slots=pod.get("slots", 0)) or ("", each)
        if pod.get("state") != "TERMINATED":
            found.append((pod.get("node") or node, slots))
    return found + left


def _take(left: list[tuple[str, int]], *, node: str, slots: int) -> tuple[str, int] | None:
    """The place of a pod that was seen: of its size, and best where it was seen. Who does not say sizes has its pods in
    the order of the places."""
    alike = [place for place in left if not slots or place[1] == slots]
    found = next((place for place in alike if slots and place[0] == node), alike[0] if alike else None)
    if found is not None:
        left.remove(found)
    return found
