"""Consolidation: where free slots would do for a request but are scattered, running trials are moved together.

A trial that is moved saves its state, leaves, and starts again on the nodes that it is nominated for; the request gets
what it has left. Who is moved loses least work: slots times the time since the last checkpoint. The room is played
through first: unless the request and everything that is moved for it have places of their own afterwards, nothing is
done. Nobody of another priority is asked, because nobody loses a place.

A gang that has to be in one domain of a topology moves nobody; one that is moved stays in one.

The search costs no more than its budget, and may miss a way that there is; what a plan leaves undone the next one does,
as what was searched in vain is remembered (searched.py).
Source: consolidation as in KAI-Scheduler; docs/reference/scheduling.md 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from services.scheduler.plan.decisions import Move
from services.scheduler.plan.lifecycle import queued_again
from services.scheduler.plan.preemption.movers import Mover, cheapest
from services.scheduler.plan.preemption.searched import SearchMemo
from services.scheduler.plan.preemption.victims import lost_s
from services.scheduler.plan.room.demand import Demand, beside_slots
from services.scheduler.plan.room.ledger import Ledger
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.room.room import Room
from services.scheduler.plan.snapshot import HeldAllocation, HourLimit, PendingAllocation, Placement, PoolSnapshot
from services.scheduler.plan.topology.placing import place_together

_SEARCHES: Final = 4
"""Requests for which a plan looks."""
_TRIES: Final = 4
"""Sets of trials that are tried for one request."""


def movable(pool: PoolSnapshot) -> dict[str, PendingAllocation]:
    """What may be moved, as the requests that they will be when they come back. Nothing is while the pool grows for a
    request: the nodes that come are for that one."""
    if pool.moves_left < 1 or (pool.growth is not None and pool.growth.now is not None):
        return {}
    longest = pool.now - pool.policy.min_runtime
    return {
        one.allocation: queued_again(one, (slots for _, slots in one.pods))
        for one in pool.held
        if one.movable
        and not one.leaving
        and one.started_at <= longest
        and one.started_at < pool.now
        and _comes_back(one, pool)
    }


def _comes_back(held: HeldAllocation, pool: PoolSnapshot) -> bool:
    """Whether nothing but room may keep it from starting again: slot-hours may be used up by then, and other pools may
    have taken what it gives back of a limit of them all."""
    is_even = len({slots for _, slots in held.pods}) == 1 and held.slots > 0
    limits = [limit for key in held.limits if (limit := pool.limits.get(key)) is not None]
    is_shared = any(isinstance(limit, HourLimit) or not limit.where for limit in limits)
    return is_even and not is_shared and held.namespace not in pool.quota_by_namespace


class Consolidation:
    """Makes room by moving."""

    def __init__(
        self, pool: PoolSnapshot, occupancy: Occupancy, requests: Mapping[str, PendingAllocation], memo: SearchMemo
    ) -> None:
        """
        requests  of what may be moved, by allocation
        memo      of searches of earlier plans
        """
        self._pool = pool
        self._occupancy = occupancy
        self._memo = memo
        self._has_seen = False
        self._moves_left = pool.moves_left if requests else 0
        self._searches_left = _SEARCHES
        closed = frozenset(node for window in pool.maintenance for node in window.nodes)
        self._requests = {
            name: msgspec.structs.replace(request, blocked_nodes=request.blocked_nodes | closed) if closed else request
            for name, request in requests.items()
        }
        self._held = {one.allocation: one for one in pool.held if one.allocation in self._requests}
        self._now = pool.now
        self._failed: set[Demand] = set()

    def exclude(self, allocation: str) -> None:
        """It leaves for another reason."""
        self._held.pop(allocation, None)

    def make_room(self, request: PendingAllocation) -> tuple[tuple[Placement, ...], list[Move]] | None:
        """Move as many as it takes, and keep their places for ``request`` and their new ones for them: the places of
        ``request``, and who is moved where. None, and nothing is done, where that is not enough."""
        if not (self._moves_left and self._searches_left and self._held):
            return None
        demand = self._occupancy.demands.of(request)
        # Slots that it may divide are not scattered.
        if demand in self._failed or demand.stays_in_domain or demand.most:
            return None
        later = self._occupancy.left_later(in_reserved=False)
        if not self._was_in_vain(demand, later):
            free = sum(left for node, left in later.by_node().items() if left > 0 and demand.allows(node))
            if free >= request.slots:
                self._searches_left -= 1
                if (found := self._search(request, demand, later)) is not None:
                    return found
            self._memo.note(demand, later.by_node(), self._held.keys(), moves_left=self._moves_left, now=self._now)
        self._failed.add(demand)
        return None

    def _was_in_vain(self, demand: Demand, later: Room) -> bool:
        """Whether an earlier plan has looked in vain."""
        if not self._has_seen:
            self._has_seen = True
            self._memo.see(self._pool, self._requests)
        left, movable = later.by_node(), self._held.keys()
        return self._memo.is_in_vain(demand, left, movable, moves_left=self._moves_left, now=self._now)

    def _search(
        self, request: PendingAllocation, demand: Demand, later: Room
    ) -> tuple[tuple[Placement, ...], list[Move]] | None:
        movers = self._movers(later)
        for _ in range(_TRIES):
            chosen = cheapest(movers, demand, later)
            if not chosen or len(chosen) > self._moves_left:
                return None
            places = self._play_through(request, demand, chosen, later)
            stays = [one for one in chosen if sorted(places.get(one.name, one.pods)) == list(one.pods)]
            if not stays and request.allocation in places:
                return self._move(request, chosen, places)
            movers = [one for one in movers if one not in stays]
        return None

    def _movers(self, later: Room) -> list[Mover]:
        """What could be placed elsewhere, the cheapest first."""
        roomiest = sorted(((left, node) for node, left in later.by_node().items()), reverse=True)[:2]
        found = [
            Mover(one.allocation, lost_s(one, self._now), one.slots, tuple(sorted(one.pods)), beside_slots(one.needs))
            for one in self._held.values()
            if len(one.pods) > 1 or any(left >= one.slots for left, node in roomiest if node != one.pods[0][0])
        ]
        return sorted(found, key=lambda one: (one.lost_s, one.slots, one.name))

    def _play_through(
        self, request: PendingAllocation, demand: Demand, chosen: Sequence[Mover], later: Room
    ) -> dict[str, tuple[tuple[str, int], ...]]:
        """Where ``request`` and all that are moved have places once these have left; those without are left out."""
        beside = Ledger()
        room = self._occupancy.room_with(later, ((one.pods, one.requests) for one in chosen), beside)
        wanted = [request, *(self._requests[one.name] for one in sorted(chosen, key=_largest_first))]
        found: dict[str, tuple[tuple[str, int], ...]] = {}
        for one in wanted:
            asked = self._occupancy.demands.of(one) if one is not request else demand
            placements = place_together(room, asked, one.allocation, one.pods)
            for place in placements or ():
                beside.add(place.node, asked.requests, -1)
            if placements is not None:
                found[one.allocation] = tuple((place.node, place.slots) for place in placements)
        return found

    def _move(
        self, request: PendingAllocation, chosen: Sequence[Mover], places: Mapping[str, tuple[tuple[str, int], ...]]
    ) -> tuple[tuple[Placement, ...], list[Move]]:
        for one in chosen:
            self._occupancy.leave(self._held.pop(one.name))
        placements = _placements(places[request.allocation])
        moves = [Move(one.name, _placements(places[one.name]), request.allocation) for one in chosen]
        kept = [self._occupancy.nominate(request, placements)]
        kept += [self._occupancy.nominate(self._requests[one.allocation], one.placements) for one in moves]
        assert all(kept), "what was played through has room"
        self._moves_left -= len(moves)
        return placements, moves


def _placements(pods: Iterable[tuple[str, int]]) -> tuple[Placement, ...]:
    return tuple(Placement(node, slots) for node, slots in pods)


def _largest_first(one: Mover) -> tuple[int, int, str]:
    return -one.pods[0][1], -one.slots, one.name
