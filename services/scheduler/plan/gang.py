"""Whole gangs or nothing: a gang that is half started holds slots that nobody can use (docs/reference/scheduling.md 16,
B1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from services.scheduler.plan.decisions import Placement
from services.scheduler.plan.fit import Room


def place_gang(pods: Sequence[int], room: Room, excluded: Collection[str] = ()) -> tuple[Placement, ...] | None:
    """Find a node for every pod and take its room, or take nothing and return None.

    pods      slots of each pod in rank order, all equal; for auxiliary pods each takes one unit of ``room``
    excluded  nodes that it must not run on
    Exact, because pods of one size compete for the same room. Returns one Placement per pod, in rank order.
    """
    if len(pods) > 1 and not has_room(pods, room, excluded):
        return None
    placements: list[Placement] = []
    for slots in pods:
        node = room.find(slots or 1, excluded)
        if node is None:
            return None  # a single pod; of several each finds one, as there is room for all
        room.take(node, slots or 1)
        placements.append(Placement(node, slots))
    return tuple(placements)


def has_room(pods: Sequence[int], room: Room, excluded: Collection[str] = ()) -> bool:
    """Whether ``place_gang`` would find a node for every pod."""
    return room.count(pods[0] or 1, excluded) >= len(pods)
