"""Keeps room within one domain for a gang that requires it: in the one that has room first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from services.scheduler.plan.room.reservations import NodeReservation
from services.scheduler.plan.topology.domains import Domain, Domains


def reserve_in_domain(
    domains: Domains,
    level: int,
    total: Mapping[str, int],
    free: Mapping[str, int],
    reserve: Callable[[Mapping[str, int]], NodeReservation | None],
) -> NodeReservation | None:
    """The reservation that is complete first; among those of which nobody knows when, the one that lacks least.

    total    units of each node that may be used
    free     those of them that nobody holds
    reserve  the reservation on some of these nodes
    """
    best: tuple[tuple[datetime, int, Domain], NodeReservation] | None = None
    for domain, nodes in domains.of_level(level).items():
        found = reserve({node: total[node] for node in nodes if node in total})
        if found is None:
            continue
        lacking = sum(max(place.slots - free.get(place.node, 0), 0) for place in found.places)
        key = found.until, lacking, domain
        if best is None or key < best[0]:
            best = key, found
    return None if best is None else best[1]
