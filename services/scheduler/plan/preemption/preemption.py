"""Who may be asked to leave for whom.

Under ``priority`` with preemption: what is less important, or of the same priority and behind in the queue. Under
``fair_share``: what belongs to a share that keeps at least as much as the one that asks has afterwards, so that nothing
goes back and forth (Kueue: preemption within fair sharing, LessThanOrEqualToFinalShare).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

from services.scheduler.plan.decisions import Preempt
from services.scheduler.plan.ordering.fair_share import ShareTree, owner_of
from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.preemption.larger_shares import LargerShares
from services.scheduler.plan.preemption.victims import PossibleVictim, candidates, choose
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.ledger import Ledger
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.room.room import Room, Units
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, Placement, PoolSnapshot
from services.scheduler.plan.topology.domains import Domain
from services.scheduler.plan.topology.victims import choose_in_domain

_WAVES: Final = 100
"""Requests for which others are asked to leave in one plan; the next plan goes on."""


class Preemption:
    """Makes room for requests that found none. ``tree`` is that of fair share, None where priorities decide."""

    def __init__(
        self,
        pool: PoolSnapshot,
        occupancy: Occupancy,
        rank: Callable[[PendingAllocation | HeldAllocation], Rank],
        tree: ShareTree | None,
        held: Iterable[HeldAllocation],
    ) -> None:
        """``held``: what those hold whose places are of the lane."""
        self._occupancy = occupancy
        self._tree = tree
        policy = pool.policy
        longest = pool.now - policy.min_runtime
        may_leave = (
            one
            for one in held
            if one.preemptible
            and not one.leaving
            and one.started_at <= longest
            and one.started_at < pool.now  # what a plan has just started, the next one leaves alone
        )
        self._candidates = candidates(may_leave, rank, pool.now) if policy.preempts else []
        self._gone: set[str] = set()
        self._bound: Units | None = None
        # What failed need not be tried again: who has a larger share may ask no more than who has a smaller one, and
        # without shares nobody more than who ranks before. The least for which it failed.
        self._failed: dict[tuple[object, ...], tuple[float, Rank | None]] = {}
        self._waves_left = _WAVES

    def exclude(self, allocation: str) -> None:
        """It leaves for another reason."""
        self._gone.add(allocation)

    def make_room(
        self, request: PendingAllocation, rank: Rank, *, in_reserved: bool
    ) -> tuple[tuple[Placement, ...], list[Preempt]] | None:
        """Ask as many to leave as it takes, and keep their places for ``request``: those places, and who is asked.

        None, and nothing is done, if all that may be asked would not be enough, or if enough are asked in one plan.
        in_reserved  also where room is kept for others
        """
        if not self._candidates or not self._waves_left:
            return None
        demand = self._occupancy.demands.of(request)
        owner, asks = owner_of(request), 0.0
        scope = (demand, in_reserved, owner.rpartition("/")[0] if self._tree else "")
        if self._tree is not None:
            asks = self._tree.path(owner)[-1].ratio_with(request.slots)
        asking = asks, None if self._tree is not None else rank
        failed = self._failed.get(scope)
        if failed is not None and asking >= failed:
            return None
        if self._if_all_left.has(demand):
            later = self._occupancy.left_later(in_reserved=in_reserved)
            chosen, within = self._choose(self._offered(request, rank), demand, later)
            if chosen is not None and (found := self._preempt(request, chosen, later, within)) is not None:
                self._waves_left -= 1
                return found
        self._failed[scope] = asking
        return None

    def _choose(
        self, in_order: Iterator[PossibleVictim], demand: Demand, later: Room
    ) -> tuple[tuple[PossibleVictim, ...] | None, Domain | None]:
        """Who leaves, and of what domain where it has to be one."""
        domains = self._occupancy.demands.domains
        if domains is None or not demand.stays_in_domain:
            return choose(in_order, demand, later), None
        return choose_in_domain(in_order, demand, later, domains) or (None, None)

    def _preempt(
        self, request: PendingAllocation, chosen: tuple[PossibleVictim, ...], later: Room, within: Domain | None
    ) -> tuple[tuple[Placement, ...], list[Preempt]] | None:
        given: Counter[str] = Counter()
        others = Ledger()
        for one in chosen:
            for node, slots in one.held.pods:
                given[node] += slots or 1
                others.add(node, one.requests)
        placements = self._occupancy.places_in(request, later, given, others, within)
        if placements is None:
            return None
        for one in chosen:
            self._gone.add(one.held.allocation)
            self._occupancy.leave(one.held)
            if self._tree is not None:
                self._tree.add(owner_of(one.held), -one.held.slots)
        self._occupancy.nominate(request, placements)
        return placements, [Preempt(one.held.allocation, request.allocation) for one in chosen]

    @property
    def _if_all_left(self) -> Units:
        """What there would be if all had left that may ever be asked, when this was asked first: a bound.
        Only units are counted."""
        if self._bound is None:
            left = dict(self._occupancy.left_later(in_reserved=True).by_node())
            for one in self._candidates:
                for node, slots in one.held.pods:
                    if node in left:
                        left[node] += slots or 1
            demands = self._occupancy.demands
            self._bound = Units(left, demands.groups, domains=demands.domains)
        return self._bound

    def _offered(self, request: PendingAllocation, rank: Rank) -> Iterator[PossibleVictim]:
        """Who may be asked, in order."""
        if self._tree is not None:
            return self._larger_shares.asked_by(request, self._gone)
        return (one for one in self._candidates if one.rank > rank and one.held.allocation not in self._gone)

    @cached_property
    def _larger_shares(self) -> LargerShares:
        assert self._tree is not None
        return LargerShares(self._tree, self._candidates)
