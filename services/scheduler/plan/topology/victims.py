"""Whom to preempt for a gang that requires one domain: those who make room for all of it in the same one."""

from __future__ import annotations

from collections.abc import Iterable

from services.scheduler.plan.preemption.victims import Places, PossibleVictim, spared
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.room import Room
from services.scheduler.plan.topology.domains import Domain, Domains

Chosen = tuple[tuple[PossibleVictim, ...], Domain]


class _Leaving:
    """Who leaves one domain."""

    def __init__(self, demand: Demand, later: Room, nodes: Iterable[str]) -> None:
        self.demand = demand.on(nodes)
        self.places = Places(self.demand, later, later.pods_in(self.demand.nodes or (), demand))
        self.chosen: list[PossibleVictim] = []


def choose_in_domain(
    in_order: Iterable[PossibleVictim], demand: Demand, later: Room, domains: Domains
) -> Chosen | None:
    """As ``choose``, which see, with the domain: the first one in which those of ``in_order`` make room."""
    assert demand.topology is not None
    level = demand.topology.level
    if (has_room := later.domain_for(demand, level)) is not None:
        return (), has_room
    offered = tuple(in_order)
    found = (_choose(offered, one, level, later, domains) for one in (demand, *demand.equal))
    return next((one for one in found if one is not None), None)


def _choose(
    in_order: Iterable[PossibleVictim], demand: Demand, level: int, later: Room, domains: Domains
) -> Chosen | None:
    pods = demand.pods
    leaving: dict[Domain, _Leaving] = {}
    for candidate in in_order:
        touched = {domains.at(node, level) for node, _ in candidate.held.pods}
        for domain in sorted(each for each in touched if each is not None):
            found = leaving.get(domain)
            if found is None:
                found = leaving[domain] = _Leaving(demand, later, domains.nodes(domain))
            if not found.places.give(candidate):
                continue
            found.chosen.append(candidate)
            if found.places.count >= pods:
                return spared(found.chosen, found.places, pods), domain
    return None
