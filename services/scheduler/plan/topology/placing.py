"""Places for gangs that are to be near each other: in the tightest domain that has room.

The narrowest level comes first; of its domains that have room the one with the least units left, which keeps others
whole. Where no domain of the level that a gang prefers has room, wider ones are looked at, and then the whole pool; in
these it is spread over as few domains of its level as possible.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.lifetimes import EMPTY
from services.scheduler.plan.room.placing import place_pods
from services.scheduler.plan.room.room import Room
from services.scheduler.plan.snapshot import Placement
from services.scheduler.plan.topology.domains import Domain

Places = tuple[Placement, ...]


def place_together(
    room: Room, demand: Demand, allocation: str, pods: tuple[int, ...], *, lasts: int = EMPTY
) -> Places | None:
    """As ``place_pods``, which see, for demands that may ask for a topology."""
    choice, domains = demand.topology, room.domains
    if choice is None or domains is None:
        return place_pods(room, demand, allocation, pods, lasts=lasts)
    if not room.has(demand):
        return None
    widest = choice.level if choice.required else 0
    for level in range(len(domains.levels) - 1, widest - 1, -1):
        domain = room.domain_for(demand, level)
        if domain is None:
            continue
        if level >= choice.level:
            return _place_on(room, domains.nodes(domain), demand.anywhere, allocation, pods, lasts=lasts)
        return _on_several(room, domains.nodes(domain), demand, allocation, pods, lasts=lasts)
    return _on_several(room, room.by_node(), demand, allocation, pods, lasts=lasts)


def _on_several(
    room: Room, nodes: Iterable[str], demand: Demand, allocation: str, pods: tuple[int, ...], *, lasts: int
) -> Places | None:
    """On nodes of several domains. Pods of several sizes are the largest that there can be, wherever that is: were they
    divided for each domain by itself, some might take the places of others."""
    if demand.most:
        return _place_on(room, nodes, demand.anywhere, allocation, pods, lasts=lasts)
    return _spread(room, nodes, demand, allocation, pods, lasts=lasts)


def _place_on(
    room: Room, nodes: Iterable[str], demand: Demand, allocation: str, pods: tuple[int, ...], *, lasts: int
) -> Places | None:
    """On these nodes alone."""
    placements = place_pods(room.part(nodes), demand, allocation, pods, lasts=lasts)
    for place in placements or ():
        room.take(place.node, place.slots or demand.units, lasts=lasts)
    return placements


def _spread(
    room: Room, nodes: Iterable[str], demand: Demand, allocation: str, pods: tuple[int, ...], *, lasts: int
) -> Places:
    """On nodes that have room together, in as few domains of its level as possible: the largest first, and the rest
    where it just fits. Pods that follow one another in rank are near each other."""
    choice, domains = demand.topology, room.domains
    assert choice is not None
    assert domains is not None
    parts: dict[Domain | None, list[str]] = {}
    room_in: dict[Domain | None, int] = {}
    for node in nodes:
        if count := room.pods_in((node,), demand):
            domain = domains.at(node, choice.level)
            parts.setdefault(domain, []).append(node)
            room_in[domain] = room_in.get(domain, 0) + count
    placements: Places = ()
    while (left := len(pods) - len(placements)) > 0:
        domain = _next(room_in, left)
        some = pods[len(placements) :][: room_in.pop(domain)]
        found = _place_on(room, parts[domain], demand.for_pods(len(some)), allocation, some, lasts=lasts)
        assert found is not None
        placements += found
    return placements


def _next(room_in: dict[Domain | None, int], left: int) -> Domain | None:
    """Where the next pods go of ``left``; nodes that are in no domain come last."""
    named = [(count, domain) for domain, count in room_in.items() if domain is not None]
    enough = [each for each in named if each[0] >= left]
    if enough:
        return min(enough)[1]
    return min(((-count, domain) for count, domain in named), default=(0, None))[1]
