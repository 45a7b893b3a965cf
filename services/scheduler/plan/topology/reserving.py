"""Keeps room for a gang that is to be near together: in one domain where that is required, or costs little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from services.scheduler.plan.room.reservations import NodeReservation
from services.scheduler.plan.snapshot import NEVER
from services.scheduler.plan.topology.domains import Domain, Domains
from services.scheduler.plan.topology.levels import LevelChoice

_TIMES_LACKING: Final = 2
"""Where nobody knows when units come free, a preferred domain may lack so many times those that are lacking elsewhere.
Of run times that are spread as usual, the last of twice as many ends little later than the last of them."""

Reserve = Callable[[Mapping[str, int]], NodeReservation | None]


def reserve_near(
    domains: Domains, choice: LevelChoice, total: Mapping[str, int], free: Mapping[str, int], reserve: Reserve
) -> NodeReservation | None:
    """Where a level is required, the reservation in one domain of it that is complete first. Where it is preferred, one
    in a domain of it or of the next wider level that has one which is complete no later than one anywhere.

    total    units of each node that may be used
    free     those of them that nobody holds
    reserve  the reservation on some of these nodes
    """
    if choice.required:
        return _in_domain(domains, choice.level, total, free, reserve)
    anywhere = reserve(total)
    if anywhere is None:
        return None
    most = _TIMES_LACKING * _lacking(anywhere, free)
    for level in range(choice.level, -1, -1):
        found = _in_domain(domains, level, total, free, reserve)
        if found is None or found.until > anywhere.until:
            continue
        if found.until != NEVER or _lacking(found, free) <= most:
            return found
    return anywhere


def _in_domain(
    domains: Domains, level: int, total: Mapping[str, int], free: Mapping[str, int], reserve: Reserve
) -> NodeReservation | None:
    """The one that is complete first; among those of which nobody knows when, the one that lacks least."""
    best: tuple[tuple[datetime, int, Domain], NodeReservation] | None = None
    for domain, nodes in domains.of_level(level).items():
        found = reserve({node: total[node] for node in nodes if node in total})
        if found is None:
            continue
        key = found.until, _lacking(found, free), domain
        if best is None or key < best[0]:
            best = key, found
    return None if best is None else best[1]


def _lacking(reservation: NodeReservation, free: Mapping[str, int]) -> int:
    """Units of its places that somebody holds."""
    return sum(max(place.slots - free.get(place.node, 0), 0) for place in reservation.places)
