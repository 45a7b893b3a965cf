"""Places all pods of a request, or none: a gang that is half started holds slots that nobody can use.

A request whose pods need not be alike gets equal ones where they have room, as few as there can be. Otherwise each pod
takes what is free of a node, the largest first, and the last one what is still missing, where the policy would put a
pod of that size: so there are no more pods than necessary. Pods of the rest of one node stay with those of the other
sizes only if it is the node of the last one, which takes the place of one of them.
Source: docs/reference/scheduling.md 4.4 and 16 (B1, B5, B6).
"""

from __future__ import annotations

from collections import Counter

from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.lifetimes import EMPTY
from services.scheduler.plan.room.offers import NodeOffers
from services.scheduler.plan.room.room import Room
from services.scheduler.plan.snapshot import Placement


def place_pods(
    room: Room, demand: Demand, allocation: str, pods: tuple[int, ...], *, lasts: int = EMPTY
) -> tuple[Placement, ...] | None:
    """Find a node for every pod and take its units, or take nothing and return None. What the pods request beside is
    not taken.

    pods   slots of each pod in rank order, all equal; for auxiliary pods each takes one unit of ``room``; for a demand
           that is to be divided, each slot
    lasts  magnitude of how long they are expected to run
    Returns one Placement per pod, in rank order: the largest is first.
    """
    if not demand.most:
        return _place_equal(room, demand, allocation, pods, lasts)
    for equal in demand.equal:
        found = _place_equal(room, equal, allocation, (equal.units,) * equal.pods, lasts)
        if found is not None:
            return found
    return _place_uneven(room, demand, allocation, lasts) if room.has(demand) else None


def _place_equal(
    room: Room, demand: Demand, allocation: str, pods: tuple[int, ...], lasts: int
) -> tuple[Placement, ...] | None:
    """Exact, because pods of one size compete for the same room."""
    if len(pods) > 1 and not room.has(demand):
        return None
    placements: list[Placement] = []
    placed: Counter[str] = Counter()
    for slots in pods:
        node = room.find(demand, allocation, placed, lasts=lasts)
        if node is None:
            return None  # a single pod; of several each finds one, as there is room for all
        room.take(node, demand.units, lasts=lasts)
        placed[node] += 1
        placements.append(Placement(node, slots))
    return tuple(placements)


def _place_uneven(room: Room, demand: Demand, allocation: str, lasts: int) -> tuple[Placement, ...]:
    """There is room for all of it."""
    placements: list[Placement] = []
    missing, offers = demand.pods, NodeOffers(room, demand, allocation, lasts)
    for offer in offers:
        pods = min(missing // offer.slots, offer.pods)
        placements += [Placement(offer.node, offer.slots)] * pods
        missing -= pods * offer.slots
        if not missing:
            break
        if pods < offer.pods:  # what is missing is less than another pod
            node: str | None = offer.node
            if not pods:
                node = offers.best_for(missing, {place.node for place in placements})
            assert node is not None, "this one would do"
            placements.append(Placement(node, missing))
            break
    for one in placements:
        room.take(one.node, one.slots, lasts=lasts)
    return tuple(placements)
