"""Nodes of the pods of an allocation. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from services.scheduler.transactions.rows import AllocationRow


def nodes_of_pods(
    *, num_pods: int, pods: Sequence[Mapping[str, Any]], places: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The node of each pod that has not ended: where it was seen, or else where the planner saw room; "" if neither.

    pods, places  as in the columns of an allocation, in rank order
    """
    ranks = [pods[rank] if rank < len(pods) else {} for rank in range(num_pods)]
    planned = [places[rank]["node"] if rank < len(places) else "" for rank in range(num_pods)]
    seen_on = [seen.get("node") for seen in ranks]
    nodes = [seen or place for seen, place in zip(seen_on, planned, strict=True)]
    if any(seen_on) and not all(seen_on):
        nodes = _with_places_left(seen_on, planned)
    return [node for seen, node in zip(ranks, nodes, strict=True) if seen.get("state") != "TERMINATED"]


def _with_places_left(seen_on: Sequence[str | None], planned: Sequence[str]) -> list[str]:
    """Whoever binds pods may give one the place that was meant for another: then the other's is what is left."""
    left = Counter(planned) - Counter(seen for seen in seen_on if seen)
    found: list[str] = []
    for seen, place in zip(seen_on, planned, strict=True):
        if seen:
            found.append(seen)
            continue
        node = place if left[place] > 0 else next((other for other in planned if left[other] > 0), place)
        left[node] -= 1
        found.append(node)
    return found


def is_on(row: AllocationRow, nodes: Collection[str], *, plan_binds: bool) -> bool:
    """Whether a pod of the allocation is on one of ``nodes``.

    plan_binds  pods that were not seen yet are where the planner saw room; False where somebody else places pods, and
                the plan was but a guess
    """
    places = row.places if plan_binds else ()
    return any(node in nodes for node in nodes_of_pods(num_pods=row.num_pods, pods=row.pods, places=places))
