"""Who may be asked to leave for whom.

Under ``priority`` with preemption: what is less important, or of the same priority and behind in the queue. Under
``fair_share``: what belongs to a share that holds more, as long as the one that asks does not hold more than the other
afterwards (Kueue calls these preemptions within fair sharing by final and by initial share).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from services.scheduler.plan.decisions import Preempt
from services.scheduler.plan.ordering.fair_share import ShareTree, owner_of
from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.preemption.victims import PossibleVictim, candidates, choose
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.room.room import Room, Units
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, Placement, PoolSnapshot

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
        *,
        auxiliary: bool,
    ) -> None:
        self._occupancy = occupancy
        self._tree = tree
        policy = pool.policy
        may_leave = (
            one
            for one in pool.held
            if one.preemptible
            and not one.leaving
            and bool(one.slots) is not auxiliary
            and one.started_at <= pool.now - policy.min_runtime
        )
        self._candidates = candidates(may_leave, rank, pool.now) if policy.preempts else []
        self._gone: set[str] = set()
        self._bound: Units | None = None
        # Whoever asks later may ask no more than whoever asked before, so what failed need not be tried again.
        self._failed: set[tuple[object, ...]] = set()
        self._waves_left = _WAVES

    def make_room(
        self, request: PendingAllocation, rank: Rank, *, in_reserved: bool
    ) -> tuple[tuple[Placement, ...], list[Preempt]] | None:
        """Ask as many to leave as it takes, and keep their places for ``request``: those places, and who is asked.

        None, and nothing is done, if all that may be asked would not be enough, or if enough are asked in one plan.
        in_reserved  also where room is kept for others
        """
        need, pods, excluded = request.pods[0] or 1, len(request.pods), request.blocked_nodes
        scope = (need, pods, excluded, in_reserved, owner_of(request).rpartition("/")[0] if self._tree else "")
        if not self._candidates or not self._waves_left or scope in self._failed:
            return None
        if self._if_all_left.count(need, excluded) >= pods:
            later = self._occupancy.left_later(in_reserved=in_reserved)
            count = later.count(need, excluded)
            known = later.by_node()
            left = (lambda node: None if node in excluded else known.get(node)) if excluded else known.get
            for offered in self._offered(request, rank):
                chosen = choose(offered, need=need, pods=pods, left=left, count=count)
                if chosen is not None:
                    self._waves_left -= 1
                    return self._preempt(request, chosen, later)
        self._failed.add(scope)
        return None

    def _preempt(
        self, request: PendingAllocation, chosen: tuple[PossibleVictim, ...], later: Room
    ) -> tuple[tuple[Placement, ...], list[Preempt]]:
        given: Counter[str] = Counter()
        for one in chosen:
            self._gone.add(one.held.allocation)
            for node, slots in one.held.pods:
                given[node] += slots or 1
            if self._tree is not None:
                self._tree.add(owner_of(one.held), -one.held.slots)
        placements = self._occupancy.places_in(request, later, given)
        for one in chosen:
            self._occupancy.leave(one.held.pods)
        if placements is None or not self._occupancy.nominate(placements):
            raise AssertionError(f"{request.allocation} has no room where others were asked to leave")
        return placements, [Preempt(one.held.allocation, request.allocation) for one in chosen]

    @property
    def _if_all_left(self) -> Units:
        """What there would be if all had left that may ever be asked, when this was asked first: a bound."""
        if self._bound is None:
            left = dict(self._occupancy.left_later(in_reserved=True).by_node())
            for one in self._candidates:
                for node, slots in one.held.pods:
                    if node in left:
                        left[node] += slots or 1
            self._bound = Units(left)
        return self._bound

    def _offered(self, request: PendingAllocation, rank: Rank) -> Iterator[Iterator[PossibleVictim]]:
        """Who may be asked, in order; if those are not enough, a second choice."""
        if self._tree is None:
            yield (one for one in self._candidates if one.rank > rank and one.held.allocation not in self._gone)
            return
        yield self._of_larger_shares(request, self._tree, strictly_before=False)
        yield self._of_larger_shares(request, self._tree, strictly_before=True)

    def _of_larger_shares(
        self, request: PendingAllocation, tree: ShareTree, *, strictly_before: bool
    ) -> Iterator[PossibleVictim]:
        """Those of the largest shares first.

        strictly_before  the one that asks ends with less than the other had, else with no more than the other keeps
        """
        parted = ((owner, tree.part(owner_of(request), owner)) for owner in self._by_owner)
        others = [(owner, *shares) for owner, shares in parted if shares is not None]
        others.sort(key=lambda other: (-other[2].ratio, other[0]))
        given: Counter[int] = Counter()
        for owner, asks, gives in others:
            ours = asks.ratio_with(request.slots)
            for one in self._by_owner[owner]:
                if one.held.allocation in self._gone:
                    continue
                after = given[id(gives)] + one.held.slots
                if ours < gives.ratio if strictly_before else ours <= gives.ratio_with(-after):
                    given[id(gives)] = after
                    yield one

    @cached_property
    def _by_owner(self) -> dict[str, list[PossibleVictim]]:
        found: dict[str, list[PossibleVictim]] = {}
        for one in self._candidates:
            found.setdefault(owner_of(one.held), []).append(one)
        return found
