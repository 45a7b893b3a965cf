"""Nodes of the pods of an allocation. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from services.scheduler.transactions.rows import AllocationRow


def nodes_of_pods(
    *, num_pods: int, pods: Sequence[Mapping[str, Any]], places: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The node of each pod that has not ended: where it was seen, or else where the planner saw room; "" if neither.

    pods, places  as in the columns of an allocation, in rank order
    """
    found: list[str] = []
    for rank in range(num_pods):
        seen = pods[rank] if rank < len(pods) else {}
        if seen.get("state") == "TERMINATED":
            continue
        planned = places[rank]["node"] if rank < len(places) else ""
        found.append(seen.get("node") or planned)
    return found


def is_on(row: AllocationRow, nodes: Collection[str], *, plan_binds: bool) -> bool:
    """Whether a pod of the allocation is on one of ``nodes``.

    plan_binds  pods that were not seen yet are where the planner saw room; False where somebody else places pods, and
                the plan was but a guess
    """
    places = row.places if plan_binds else ()
    return any(node in nodes for node in nodes_of_pods(num_pods=row.num_pods, pods=row.pods, places=places))
