"""Keeps room for a blocked request: which nodes it collects as they come free, and from when all of them are.

Where the ends of those that hold the nodes are declared, the reservation has an instant: until then others may use its
room if they end in time (EASY backfill: Lifka 1995, Mu'alem and Feitelson 2001). While that is far away it rather takes
nodes that others hold than such as stand idle for it. Otherwise the nodes that lack least
are named. The reservation is made anew by each plan, from the same facts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from services.scheduler.plan.room.room import hash_of
from services.scheduler.plan.snapshot import NEVER, Placement

Holders = Mapping[str, Iterable[tuple[datetime, int]]]
"""Until when who holds how many units, by node."""
_NOW: Final = datetime.min.replace(tzinfo=UTC)


class NodeReservation(Struct, frozen=True):
    places: tuple[Placement, ...]
    """Units on each node, as many as there are pods there."""
    until: datetime
    """When all of them are free; NEVER where nobody knows."""
    kept: Mapping[str, int]
    """Of what is free now, units of each node that are needed then: less where others leave before."""


class _Place(Struct, frozen=True, gc=False, order=True):
    free_at: datetime
    lacking: int
    number: int
    """Hash of the node, which decides among equals."""
    node: str
    count: int
    """Of pods there, this one among them."""


class Others(Struct, frozen=True):
    """What a request asks for beside units."""

    pods: Callable[[str], int]
    """How many of its pods a node has enough of it for when empty."""
    free_at: Callable[[str, int], datetime]
    """When a node has enough of it for so many pods."""


def reserve(
    *,
    need: int,
    pods: int,
    free: Mapping[str, int],
    total: Mapping[str, int],
    holders: Holders,
    borrowed: Callable[[str], int] = lambda _node: 0,
    others: Others | None = None,
    usable: Callable[[int], int] = int,
    needed: Callable[[int], int] = int,
    sure_until: datetime = NEVER,
) -> NodeReservation | None:
    """The places for ``pods`` pods of ``need`` units each that come free first, or None where there will never be
    enough.

    free        units of each node that nobody holds, less what is kept for others; that may be more
    total       units of each node that it may use that are kept for nobody
    borrowed    units of a node that come free and are kept for others, who need what is free now the less
    others      None where it asks for units alone
    usable      how many of so many units of a node it has use for
    needed      the other way round: how many a node must have that so many can be used
    sure_until  where all are free by then, they are those that lack least now, in case that ends are later than is
                said; where it takes longer, any that are free in time will do, which leaves more to others meanwhile
    """
    found = (
        place
        for node, units in total.items()
        if units >= need
        for place in _places(
            node,
            min(units // need, pods),
            need,
            free.get(node, 0),
            holders=holders.get(node, ()),
            usable=usable,
            needed=needed,
        )
    )
    places = sorted(found) if others is None else _with_others(list(found), others, pods)
    if len(places) < pods:
        return None
    until = places[pods - 1].free_at
    if until != NEVER:
        # Any that are free by then would do; those are the surest that lack least now.
        places = places[: bisect_right(places, until, key=lambda place: place.free_at)]
        places.sort(key=lambda place: (place.lacking if until <= sure_until else 0, place.number, place.node))
    units: Counter[str] = Counter()
    for place in places[:pods]:
        units[place.node] += need
    units = Counter({node: needed(count) for node, count in units.items()})
    return NodeReservation(
        places=tuple(Placement(node, count) for node, count in sorted(units.items())),
        until=until,
        kept={node: count - _left_over(borrowed(node), holders.get(node, ()), until) for node, count in units.items()},
    )


def _left_over(borrowed: int, holders: Iterable[tuple[datetime, int]], until: datetime) -> int:
    """Units that come free until then and that are kept for nobody, when ``borrowed`` of them are kept for others."""
    if until == NEVER:
        return 0
    return max(sum(units for ends_at, units in holders if ends_at <= until) - borrowed, 0)


def _places(
    node: str,
    most: int,
    need: int,
    free: int,
    *,
    holders: Iterable[tuple[datetime, int]],
    usable: Callable[[int], int],
    needed: Callable[[int], int],
) -> Iterable[_Place]:
    number = hash_of(node)
    left = free
    at = _NOW
    leaving = iter(sorted(holders))
    for count in range(1, most + 1):
        lacking = max(needed(count * need) - free, 0)
        while usable(left) < count * need and (next_one := next(leaving, None)) is not None:
            at = max(at, next_one[0])
            left += next_one[1]
        if usable(left) < count * need:
            at = NEVER
        yield _Place(at, lacking, number, node, count)


def _with_others(places: list[_Place], others: Others, pods: int) -> list[_Place]:
    """``places``, of which the units alone were looked at, with when there is enough of everything there: in order, as
    far as they may be among those that ``pods`` pods get. No place is free before its units are, so that those which
    come free late need not be looked at."""
    waiting = [(place, False) for place in places]
    heapify(waiting)
    found: list[_Place] = []
    until = NEVER
    while waiting and (len(found) < pods or (until != NEVER and waiting[0][0].free_at <= until)):
        place, is_known = heappop(waiting)
        if not is_known:
            if place.count > others.pods(place.node):
                continue
            if place.free_at != NEVER:
                at = max(place.free_at, others.free_at(place.node, place.count))
                if at != place.free_at:
                    heappush(waiting, (replace(place, free_at=at), True))
                    continue
        found.append(place)
        if len(found) == pods:
            until = place.free_at
    return found


class HoldersByNode:
    """The holders of each node, from the ends and the pods of allocations."""

    def __init__(self) -> None:
        self.by_node: defaultdict[str, list[tuple[datetime, int]]] = defaultdict(list)

    def add(self, pods: Iterable[tuple[datetime, Iterable[tuple[str, int]]]]) -> None:
        for ends_at, placed in pods:
            for node, slots in placed:
                self.by_node[node].append((ends_at, slots or 1))
