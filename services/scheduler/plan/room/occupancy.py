"""Who has, gets and keeps which units of the nodes while a queue is planned.

Four views of the same nodes, kept in step: what is free; what of it is kept for nobody; what will be free once those
that were asked to leave have left; what is in service at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import NamedTuple

import msgspec

from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.ordering.backfill import magnitude
from services.scheduler.plan.room.candidates import deletion_candidates
from services.scheduler.plan.room.demand import Demand, Demands, beside_slots
from services.scheduler.plan.room.ledger import Ledger
from services.scheduler.plan.room.lifetimes import Lifetimes
from services.scheduler.plan.room.reservations import HoldersByNode, NodeReservation, Others, reserve
from services.scheduler.plan.room.room import Fits, Room, Units
from services.scheduler.plan.room.stock import Stock, StockView
from services.scheduler.plan.snapshot import (
    NEVER,
    HeldAllocation,
    NodeSlots,
    PendingAllocation,
    Placement,
    PoolSnapshot,
)
from services.scheduler.plan.topology.domains import Domain
from services.scheduler.plan.topology.levels import LevelChoice
from services.scheduler.plan.topology.placing import place_together
from services.scheduler.plan.topology.reserving import reserve_near

Pods = Iterable[tuple[str, int]]
"""Nodes and slots."""


class FreeUnits(NamedTuple):
    """Of the nodes that a request may use and that are in service."""

    pods: int
    """Pods of it that find room in what is free."""
    free: int
    total: int
    largest: int
    """Units of the largest node in service."""
    is_selected: bool
    """Whether these are some of the nodes only."""


class Occupancy:
    """Units of one lane: slots, or places for auxiliary pods."""

    def __init__(self, pool: PoolSnapshot, demands: Demands, stock: Stock, *, auxiliary: bool) -> None:
        """``stock`` is that of both lanes, and what is taken here is taken of it."""
        self._pool = pool
        self._auxiliary = auxiliary
        self._stock = stock
        self.demands = demands
        nodes = [node for node in pool.nodes or () if node.available]
        self._candidates = deletion_candidates(nodes)
        self._elsewhere: dict[Demand, Demand] = {}
        """Demands on nodes that are no candidates."""
        self._total = {node.name: self._units_of(node) for node in nodes}
        free = {node.name: self._units_of(node) - (0 if auxiliary else node.lent) for node in nodes}
        self._leaving: Counter[str] = Counter()
        for one in (*pool.held, *pool.moving):
            for node, units in self._pods_of(one.pods):
                if node in free:
                    free[node] -= units
                    if one.leaving:
                        self._leaving[node] += units
        # Worst fit spreads, and work without slots keeps no node from becoming empty.
        matters = pool.policy.fitting == "best" and not auxiliary
        self._lifetimes = Lifetimes(pool.held, nodes, now=pool.now) if matters else None
        self._free = self._room(free, stock.left)
        self._open: Room | None = None
        self._later: Room | None = None
        self._later_reserved: Room | None = None
        self._reserved: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        """Of what is free: units that are kept for those who have reservations."""
        self._promised: Counter[str] = Counter()
        self._owed: Counter[str] = Counter()
        """Of what comes free: units that are kept for those who were nominated."""
        self._fits_empty: dict[Demand, bool] = {}
        self._most_in_all: dict[Demand, int | None] = {}
        self._started: list[tuple[datetime, tuple[tuple[str, int], ...]]] = []
        """Since the holders were asked for last."""

    # What there is

    def has_room_when_empty(self, request: PendingAllocation) -> bool:
        """Whether it would fit if nothing ran."""
        demand = self.demands.of(request)
        found = self._fits_empty.get(demand)
        if found is None:
            found = self._fits_empty[demand] = self._empty.has(demand)
        return found

    def has_room_in_all(self, request: PendingAllocation, excluded: Collection[str] = ()) -> bool:
        """The same if every node was in service."""
        return self._all_in_service.has(self.demands.when_in_service(request, excluded))

    def has_free_room(self, request: PendingAllocation) -> bool:
        """Whether it would fit if nothing was kept for others."""
        return self._free.has(self.demands.of(request))

    def room_in_all(self, request: PendingAllocation) -> int:
        """Pods of it that would fit if nothing ran and every node were in service, wherever they are."""
        return self._all_in_service.count(self.demands.when_in_service(request, ()))

    def most_in_domain_of_all(self, request: PendingAllocation) -> int | None:
        """The same in the domain that has room for the most of them; None where there is not room enough anywhere."""
        demand = self.demands.when_in_service(request, ())
        if demand not in self._most_in_all:
            room = self._all_in_service
            self._most_in_all[demand] = room.most_in_domain(demand) if room.has(demand.anywhere) else None
        return self._most_in_all[demand]

    def most_in_domain(self, request: PendingAllocation) -> int:
        """Pods of it that would fit now in the domain that has room for the most of them."""
        return self._free.most_in_domain(self.demands.of(request))

    def lacks_no_units(self, request: PendingAllocation) -> bool:
        """Whether there are free units enough for it: then it waits for something else of their nodes."""
        return self._free.has_units(self.demands.of(request))

    def free_room(self, request: PendingAllocation) -> FreeUnits:
        """What is free of what it needs, and of how much."""
        demand = self.demands.of(request)
        return FreeUnits(
            pods=min(self._free.count(demand), demand.pods),
            free=self._free.units_of(demand),
            total=self._empty.units_of(demand),
            largest=max(self._total.values(), default=0),
            is_selected=demand.nodes is not None or bool(demand.excluded),
        )

    def waits_for_units_alone(self, request: PendingAllocation) -> bool:
        """Whether any node would do that had the units."""
        demand = self.demands.of(request)
        return demand.nodes is None and not (demand.requests and self.lacks_no_units(request))

    def has_room_when_left(self, request: PendingAllocation) -> bool:
        """Whether it would fit once those have left that are leaving, whatever is kept for others."""
        left = {node: units + self._leaving[node] for node, units in self._free.by_node().items()}
        fits = self._stock.coming.pods if self._stock else None
        return Units(left, self.demands.groups, fits).has(self.demands.of(request))

    def free_places(self, request: PendingAllocation, *, in_reserved: bool) -> tuple[Placement, ...]:
        """Places for as many pods of ``request`` as have room; nothing is taken.

        in_reserved  room that is kept for others will do
        """
        room = self._free if in_reserved or self._open is None else self._open
        fitting = min(room.count(self.demands.of(request)), len(request.pods))
        if not fitting:
            return ()
        part = msgspec.structs.replace(request, pods=request.pods[:fitting])
        places = place_together(room, self.demands.of(part), request.allocation, part.pods) or ()
        for node, count in _units(places).items():
            room.put(node, room.left(node) + count)
        return places

    # Starting

    def start(self, request: PendingAllocation, *, in_reserved: bool = False) -> tuple[Placement, ...] | None:
        """Take room for all pods of ``request``, or take nothing and return None.

        in_reserved  room that is kept for others will do
        """
        room = self._free if in_reserved or self._open is None else self._open
        demand, lasts = self.demands.of(request), magnitude(request)
        placements = None
        if self._candidates:
            elsewhere = self._elsewhere.get(demand)
            if elsewhere is None:
                elsewhere = self._elsewhere[demand] = demand.avoiding(self._candidates)
            placements = place_together(room, elsewhere, request.allocation, request.pods, lasts=lasts)
        if placements is None:
            placements = place_together(room, demand, request.allocation, request.pods, lasts=lasts)
        if placements is None:
            return None
        if room is not self._free:
            for place in placements:
                self._free.take(place.node, place.slots or 1)
        self._took(request, placements)
        return placements

    def start_at(self, request: PendingAllocation, placements: tuple[Placement, ...]) -> bool:
        """Take just these places, or nothing."""
        units = _units(placements)
        if not self._fits_at(request, placements, {}, self._stock.left):
            return False
        for node, count in units.items():
            self._free.take(node, count, lasts=magnitude(request))
        self._took(request, placements)
        return True

    # Keeping room

    def nominate(self, request: PendingAllocation, placements: tuple[Placement, ...]) -> bool:
        """Keep these places, first from what comes free; or nothing, where they do not come free."""
        units = _units(placements)
        if not self._fits_at(request, placements, self._leaving, self._stock.coming):
            return False
        for place in placements:
            self._stock.nominate(place.node, self.demands.of(request).requests)
        for node, count in units.items():
            leaving = min(self._leaving[node], count)
            self._leaving[node] -= leaving
            self._owed[node] += leaving
            self._free.take(node, count - leaving)
        self._started.append((NEVER, tuple(units.items())))
        self._in_step(units)
        return True

    def leave(self, held: HeldAllocation) -> None:
        """``held`` is asked to leave."""
        units: Counter[str] = Counter()
        for node, count in self._pods_of(held.pods):
            if node in self._total:
                units[node] += count
                self._stock.leave(node, beside_slots(held.needs))
        self._leaving.update(units)
        self._in_step(units)

    def has_room_later(self, request: PendingAllocation) -> bool:
        """Whether it would fit once those have left that are leaving, into what is then kept for nobody."""
        return self._free_later.has(self.demands.of(request))

    def promise(self, request: PendingAllocation) -> None:
        """Nobody else is to count on that room, which ``request`` has."""
        demand = self.demands.of(request)
        placements = place_together(self._free_later, demand, request.allocation, request.pods)
        assert placements is not None
        self._promised += _units(placements)
        for place in placements:
            self._stock.promise(place.node, demand.requests)

    def left_later(self, *, in_reserved: bool) -> Room:
        """What will be free then; less than nothing on nodes where more is kept than that.

        in_reserved  what is kept for others, too
        """
        if not in_reserved or not self._reserved:
            return self._free_later
        if self._later_reserved is None:
            left = {node: self._units_later(node) + self._reserved.get(node, 0) for node in self._total}
            self._later_reserved = self._room(left, self._stock.later_reserved)
        return self._later_reserved

    def places_in(
        self,
        request: PendingAllocation,
        later: Room,
        given: Mapping[str, int],
        others: Ledger,
        within: Domain | None = None,
    ) -> tuple[Placement, ...] | None:
        """Places for it when so many units more are ``given`` on some nodes, of which those that are out of service are
        none, and so much else of ``others``; nothing is taken.

        within  on the nodes of this domain; None is anywhere
        """
        demand = self.demands.of(request)
        given = {node: units for node, units in given.items() if node in self._total}
        left = {node: later.left(node) for node in (*later.with_at_least(demand.units), *given)}
        for node, units in given.items():
            left[node] += units
        domains = self.demands.domains
        if domains is not None and within is not None:
            left = {node: left[node] for node in domains.nodes(within) if node in left}
        return place_together(self._room_beside(left, later, others), demand, request.allocation, request.pods)

    def room_with(self, later: Room, leaving: Iterable[tuple[Pods, Amounts]], beside: Ledger) -> Room:
        """A copy of ``later`` in which some have left: their pods, and what each of these requests beside slots.
        ``beside`` gets what they give of that; what is placed in the copy has to be taken of it."""
        left = dict(later.by_node())
        for pods, requests in leaving:
            for node, slots in pods:
                if node in left:
                    left[node] += slots or 1
                    beside.add(node, requests)
        return self._room_beside(left, later, beside)

    def _room_beside(self, left: Mapping[str, int], later: Room, given: Ledger) -> Room:
        """A room of so many units of each node, where there is what ``later`` has of everything else, and ``given``."""

        def fits(node: str, requests: Amounts, _given: Mapping[str, int] | None = None) -> int:
            return later.fits(node, requests, given.of(node))

        demands = self.demands
        return Room(left, self._total, self._pool.policy.fitting, demands.groups, fits, domains=demands.domains)

    def find_reservation(self, request: PendingAllocation, *, sure_until: datetime) -> NodeReservation | None:
        """The places for ``request`` that come free first; None where there will never be enough.

        sure_until  where all are free by then, they are those that lack least now
        """
        demand = self.demands.of(request)
        topology = demand.topology
        found = (self._reservation(one, topology, sure_until=sure_until) for one in (demand, *demand.equal))
        return next((one for one in found if one is not None), None)

    def _reservation(
        self, demand: Demand, topology: LevelChoice | None, *, sure_until: datetime
    ) -> NodeReservation | None:
        stock, now = self._stock, self._pool.now
        requests = demand.requests
        others = Others(
            pods=lambda node: demand.places_of(stock.pods_unreserved(node, requests)),
            free_at=lambda node, count: stock.free_at(node, requests, demand.pods_at(count), now),
        )
        # ``Counter`` answers for what it does not have, but takes its time.
        reserved, kept, owed = self._reserved.get, self._kept.get, self._owed.get
        free = {node: left - reserved(node, 0) - owed(node, 0) for node, left in self._free.by_node().items()}
        total = {
            node: demand.places_in(units - reserved(node, 0)) * demand.units
            for node, units in self._total.items()
            if demand.allows(node)
        }
        find = partial(
            reserve,
            need=demand.units,
            pods=demand.pods,
            free=free,
            holders=self._holders_now(),
            borrowed=lambda node: reserved(node, 0) - kept(node, 0) + owed(node, 0),
            others=others if requests and stock else None,
            usable=demand.places_in if demand.most else int,
            needed=demand.units_for if demand.most else int,
            sure_until=sure_until,
        )
        if topology is None or self.demands.domains is None:
            return find(total=total)
        return reserve_near(self.demands.domains, topology, total, free, lambda some: find(total=some))

    def keep(self, request: PendingAllocation, reservation: NodeReservation) -> None:
        """Keep its places for ``request``."""
        if self._open is None:
            self._open = self._room(self._free.by_node(), self._stock.open)
        demand = self.demands.of(request)
        for place in reservation.places:
            self._reserved[place.node] += place.slots
            self._kept[place.node] += max(reservation.kept[place.node], 0)
            pods = demand.pods_at(place.slots // demand.units)
            self._stock.keep(place.node, demand.requests, pods, reservation.until)
        self._in_step(place.node for place in reservation.places)

    def _took(self, request: PendingAllocation, placements: tuple[Placement, ...]) -> None:
        ends_at = NEVER if request.runs_for is None else self._pool.now + request.runs_for
        pods = tuple((place.node, place.slots) for place in placements)
        for place in placements:
            self._stock.take(place.node, self.demands.of(request).requests, ends_at)
        self._started.append((ends_at, pods))
        self._in_step(node for node, _ in pods)

    def _in_step(self, nodes: Iterable[str]) -> None:
        """Other views follow what is free on ``nodes``."""
        if self._open is None and self._later is None:
            return
        for node in nodes:
            free = self._free.left(node)
            if self._open is not None:
                self._open.put(node, max(free - self._kept[node], 0))
            if self._later is not None:
                self._later.put(node, self._units_later(node))
            if self._later_reserved is not None:
                self._later_reserved.put(node, self._units_later(node) + self._reserved[node])

    def _units_later(self, node: str) -> int:
        left = self._free.left(node) + self._leaving.get(node, 0)
        return left - self._reserved.get(node, 0) - self._promised.get(node, 0)

    @property
    def _free_later(self) -> Room:
        if self._later is None:
            left = {node: self._units_later(node) for node in self._total}
            self._later = self._room(left, self._stock.later)
        return self._later

    @cached_property
    def _holders(self) -> HoldersByNode:
        """As of the last time that somebody asked."""
        now, found = self._pool.now, HoldersByNode()
        found.add(
            (now if one.leaving else one.ends_at or NEVER, self._pods_of(one.pods))
            for one in (*self._pool.held, *self._pool.moving)
        )
        if not self._auxiliary:
            found.add((NEVER, ((node.name, node.lent),)) for node in self._pool.nodes or () if node.lent)
        return found

    def _holders_now(self) -> Mapping[str, Iterable[tuple[datetime, int]]]:
        """Until when who holds how many units, by node."""
        self._holders.add(self._started)
        self._started.clear()
        return self._holders.by_node

    @cached_property
    def _empty(self) -> Units:
        return Units(self._total, self.demands.groups, self._fits_when_empty, self.demands.domains)

    @cached_property
    def _all_in_service(self) -> Units:
        units = {node.name: self._units_of(node) for node in self._pool.nodes or ()}
        return Units(units, self.demands.groups, self._fits_when_empty, self.demands.domains)

    def _room(self, left: Mapping[str, int], view: StockView) -> Room:
        fits = view.pods if self._stock else None
        demands, fitting = self.demands, self._pool.policy.fitting
        return Room(
            left, self._total, fitting, demands.groups, fits, domains=demands.domains, lifetimes=self._lifetimes
        )

    @property
    def _fits_when_empty(self) -> Fits | None:
        return self._stock.pods_when_empty if self._stock else None

    def _fits_at(
        self,
        request: PendingAllocation,
        placements: tuple[Placement, ...],
        coming: Mapping[str, int],
        view: StockView,
    ) -> bool:
        """Whether just these places are free, together with the units that are ``coming``."""
        demand = self.demands.of(request)
        pods = Counter(place.node for place in placements)
        return self._is_near(demand, placements) and all(
            demand.allows(node)
            and self._free.left(node) + coming.get(node, 0) >= count
            and (not demand.requests or view.pods(node, demand.requests) >= pods[node])
            for node, count in _units(placements).items()
        )

    def _is_near(self, demand: Demand, placements: Iterable[Placement]) -> bool:
        """Whether these places are in one domain, where that is required."""
        domains, choice = self.demands.domains, demand.topology
        if domains is None or choice is None or not choice.required:
            return True
        return domains.share_one((place.node for place in placements), choice.level)

    def _units_of(self, node: NodeSlots) -> int:
        return node.max_aux if self._auxiliary else node.slots

    def _pods_of(self, pods: Iterable[tuple[str, int]]) -> Iterable[tuple[str, int]]:
        """Of ``pods`` those of this lane, in its units."""
        if self._auxiliary:
            return [(node, 1) for node, slots in pods if not slots]
        return [(node, slots) for node, slots in pods if slots]


def _units(placements: Iterable[Placement]) -> Counter[str]:
    units: Counter[str] = Counter()
    for place in placements:
        units[place.node] += place.slots or 1
    return units
