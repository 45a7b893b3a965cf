"""Requests that have no room, and what that means for those behind them.

The first of a level that has no room gets a reservation. Where it has an instant, it stays until then. Where nobody
knows when its nodes come free, free slots are kept for ``hold_limit`` at first; then others may pass it, until
``max_overtakes`` of them have, or ``max_overtaken_for`` is over: from then on whatever comes free there is kept, but
for work that would end in time even if it took several times as long as it says, the more times the longer the request
has waited. So it neither keeps slots idle for work of days, nor waits behind small work for ever.
Source: docs/reference/scheduling.md 16 (B4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum, auto
from typing import Final

from services.scheduler.plan.decisions import Blocked
from services.scheduler.plan.nodes.eligible import Names
from services.scheduler.plan.preemption.returning import is_resting
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.room.reservations import NodeReservation
from services.scheduler.plan.snapshot import NEVER, PendingAllocation, PoolSnapshot

_SHORTEST: Final = timedelta(minutes=1)
_SOON: Final = timedelta(minutes=30)
"""A reservation that begins so soon is of the nodes that lack least: what stands idle for it does so for a short time,
and ends are often later than is said. One that begins later leaves what is free to others, as far as there are nodes
that come free by then."""
_MOST_HEADS: Final = 50
"""Each costs a look at its nodes, and at every other request."""


def has_been_passed_enough(request: PendingAllocation, pool: PoolSnapshot) -> bool:
    """Whether as many have started before a blocked request as the policy allows, or it was blocked for as long."""
    waited = pool.now - (request.blocked_at or pool.now)
    return waited >= pool.policy.max_overtaken_for or request.overtaken >= pool.policy.max_overtakes


class Clearance(Enum):
    """Where a request may start, for the sake of those before it."""

    NOWHERE = auto()
    OPEN = auto()
    """In what is kept for nobody."""
    ALL = auto()
    """In what is kept for others, too: it is out of the way when they can start."""


class _Head:
    """The first blocked request of a level."""

    def __init__(self, request: PendingAllocation, nodes: Names | None, pool: PoolSnapshot) -> None:
        policy = pool.policy
        self.request = request
        self.nodes = nodes
        self.since = request.blocked_at or pool.now
        self.overtaken = request.overtaken
        self.most = policy.max_overtakes
        waited = pool.now - self.since
        self.reservation: NodeReservation | None = None
        self._is_new = waited <= policy.hold_limit
        self._too_long = waited >= policy.max_overtaken_for
        self._bounds_waited = max(waited / max(policy.max_overtaken_for, _SHORTEST), 1.0)

    @property
    def is_final(self) -> bool:
        """Nobody may pass any more but what ends long before it starts."""
        return self._too_long or self.overtaken >= self.most

    @property
    def caution(self) -> float:
        """So many times what a request says that it runs has to end before this one can start, for it to pass.

        Ends that are declared are the latest, and what runs may leave before: the longer this one has waited, the less
        may be in its way. Without any such work, requests that collect nodes for hours leave them idle, and everybody
        waits longer in the end, large requests, too.
        """
        return 1.0 + self._bounds_waited if self.is_final else 1.0

    def keeps_room(self, found: NodeReservation) -> bool:
        return self._is_new or self.is_final or found.until != NEVER


class BlockedRequests:
    """``gives_way(request, head)`` says whether ``head`` has to let ``request`` pass, whatever is kept for it."""

    def __init__(
        self,
        pool: PoolSnapshot,
        occupancy: Occupancy,
        gives_way: Callable[[PendingAllocation, PendingAllocation], bool],
    ) -> None:
        self._pool = pool
        self._occupancy = occupancy
        self._gives_way = gives_way
        self._preempts = pool.policy.preempts
        self._heads: dict[tuple[int, Names | None], _Head] = {}
        """By level and the nodes that they may use: those of other nodes are in nobody's way."""
        self._near: dict[Names | None, list[_Head]] = {}
        """Heads by the nodes that somebody may use, as asked for since the last of them came."""
        self._before: list[_Head] = []
        """Heads of levels that are more important than the present one."""
        self._count_before: Counter[Names | None] = Counter()
        self._sharing: dict[tuple[Names, Names], bool] = {}

    def __len__(self) -> int:
        """Levels and sets of nodes on which something is blocked."""
        return len(self._heads)

    def leave_level(self, counted: Mapping[Names | None, int]) -> None:
        """Go on with a less important level; ``counted`` requests of the one before have no room, by the nodes that
        they may use."""
        self._count_before.update(counted)
        self._before = list(self._heads.values())

    def is_behind_others(self, request: PendingAllocation) -> bool:
        """Whether something more important has no room on nodes that it may use."""
        return self._count_ahead(self._nodes_of(request)) > 0

    def block(self, request: PendingAllocation, level: int) -> bool:
        """``request`` has no room; whether some is kept for it from now on."""
        nodes = self._nodes_of(request)
        if (level, nodes) in self._heads or len(self._heads) >= _MOST_HEADS or self._is_first_anywhere(request):
            return False
        head = self._heads[level, nodes] = _Head(request, nodes, self._pool)
        self._near = {}
        sure_until = NEVER if head.is_final else self._pool.now + _SOON
        found = self._occupancy.find_reservation(request, sure_until=sure_until)
        if found is not None and head.keeps_room(found):
            self._occupancy.keep(request, found)
            head.reservation = found
        return head.reservation is not None

    def is_head(self, request: PendingAllocation) -> bool:
        """Whether it is the first of its level that has no room."""
        return any(head.request is request for head in self._heads.values())

    def passes(self, request: PendingAllocation, nodes: Names | None) -> bool:
        """Whether all that are in its way on the nodes that it may use let it pass, as its share has less."""
        heads = self._heads_on(nodes)
        return bool(heads) and all(self._gives_way(request, head.request) for head in heads)

    def clearance(self, request: PendingAllocation, nodes: Names | None) -> Clearance:
        """That of everybody who is like ``request``, whatever their shares have, on the nodes that it may use."""
        heads = self._heads_on(nodes)
        if not heads:  # there may be more that are blocked than have a place among them
            return Clearance.NOWHERE if self._count_ahead(nodes) else Clearance.OPEN
        if self._is_out_of_the_way(request, heads):
            return Clearance.ALL
        ahead = self._count_ahead(nodes)
        if not ahead:
            return Clearance.OPEN
        # Of a less important level: beside one blocked request its reservation is enough; more would be in the way of
        # those that have none.
        before = (head for head in self._before if self._share(head.nodes, nodes))
        only = ahead == 1 and all(head.reservation is not None for head in before)
        return Clearance.OPEN if only else Clearance.NOWHERE

    def started(self, *, in_reserved: bool, request: PendingAllocation) -> None:
        """A request has started behind those that are blocked."""
        heads = self._heads_on(self._nodes_of(request))
        if in_reserved and self._ends_in_time(request, heads):
            return
        for head in heads:
            if in_reserved or head.reservation is None:
                head.overtaken += 1

    def seen(self) -> tuple[Blocked, ...]:
        """The heads, as they are now."""
        return tuple(
            Blocked(
                head.request.allocation,
                head.since,
                head.overtaken,
                reserved=head.reservation.places if head.reservation else (),
                until=head.reservation.until if head.reservation and head.reservation.until != NEVER else None,
            )
            for head in self._heads.values()
        )

    def _is_first_anywhere(self, request: PendingAllocation) -> bool:
        """When a slot comes free anywhere, one that needs no more is the first to see it."""
        small = request.pods == (1,) and not request.blocked_nodes
        return small and self._occupancy.waits_for_units_alone(request)

    def _nodes_of(self, request: PendingAllocation) -> Names | None:
        return self._occupancy.demands.of(request).nodes

    def _heads_on(self, nodes: Names | None) -> list[_Head]:
        """Those that may use some of these nodes, too."""
        found = self._near.get(nodes)
        if found is None:
            found = self._near[nodes] = [head for head in self._heads.values() if self._share(head.nodes, nodes)]
        return found

    def _count_ahead(self, nodes: Names | None) -> int:
        if not self._count_before:
            return 0
        return sum(count for theirs, count in self._count_before.items() if self._share(theirs, nodes))

    def _share(self, one: Names | None, other: Names | None) -> bool:
        """Whether there is a node that both may use."""
        if one is None or other is None or one is other:
            return True
        found = self._sharing.get((one, other))
        if found is None:
            found = self._sharing[one, other] = not one.isdisjoint(other)
        return found

    def _is_out_of_the_way(self, request: PendingAllocation, heads: list[_Head]) -> bool:
        if self._ends_in_time(request, heads):
            return True
        if not (self._preempts and request.preemptible) or is_resting(request, self._pool):
            return False
        # Those whose nodes are about to come free would only have it leave again.
        return not any(head.is_final or self._is_imminent(head) for head in heads)

    def _is_imminent(self, head: _Head) -> bool:
        return head.reservation is not None and head.reservation.until <= self._pool.now

    def _ends_in_time(self, request: PendingAllocation, heads: list[_Head]) -> bool:
        if request.runs_for is None:
            return False
        untils = [head.reservation.until for head in heads if head.reservation is not None]
        if not untils or max(untils) == NEVER:
            return False
        return request.runs_for <= (min(untils) - self._pool.now) / max(head.caution for head in heads)
