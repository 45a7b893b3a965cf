"""Whole gangs or nothing: a gang that is half started holds slots that nobody can use (spec/scheduling.md 16, B1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from services.scheduler.plan.decisions import Place
from services.scheduler.plan.fit import Room


def place_gang(pods: Sequence[int], room: Room, excluded: Collection[str] = ()) -> tuple[Place, ...] | None:
    """Find a node for every pod and take its room, or take nothing and return None.

    pods      slots of each pod in rank order, all equal; for auxiliary pods each takes one unit of ``room``
    excluded  nodes that it must not run on
    Exact, because pods of one size compete for the same room. Returns one Place per pod, in rank order.
    """
    places: list[Place] = []
    for slots in pods:
        units = slots or 1
        node = room.find(units, excluded)
        if node is None:
            for place in places:
                room.take(place.node, -(place.slots or 1))
            return None
        room.take(node, units)
        places.append(Place(node, slots))
    return tuple(places)
