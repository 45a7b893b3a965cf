"""Whom a share may ask to leave: those of the shares that have most come first.

Two allocations are compared where the paths of their shares part, so that all below one share there stand or fall
together. Of each share only what has changed since it was asked for last is put in its place again: whoever asks looks
at the shares beside its own, not at everybody who holds something.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter

from services.scheduler.plan.ordering.fair_share import Share, ShareTree, owner_of
from services.scheduler.plan.preemption.victims import PossibleVictim
from services.scheduler.plan.snapshot import PendingAllocation


class _Siblings:
    """Shares beside one another below which somebody may be asked, the largest first."""

    def __init__(self) -> None:
        self._ratios: dict[Share, float] = {}
        self._order: list[tuple[float, int, Share]] = []

    def put(self, share: Share) -> None:
        """It is one of them, or may have another ratio than before."""
        before, ratio = self._ratios.get(share), share.ratio
        if before == ratio:
            return
        if before is not None:
            del self._order[bisect_left(self._order, (-before, id(share), share))]
        self._ratios[share] = ratio
        insort(self._order, (-ratio, id(share), share))

    def larger_than(self, ratio: float, but: Share) -> Iterator[tuple[float, Share]]:
        """Minus the ratio of each that is not smaller, and the share; without ``but``."""
        for minus_ratio, _, share in self._order:
            if -minus_ratio < ratio:
                return
            if share is not but:
                yield minus_ratio, share


class LargerShares:
    """``candidates`` are those who may be asked by somebody, in the order in which they are asked within a share."""

    def __init__(self, tree: ShareTree, candidates: Iterable[PossibleVictim]) -> None:
        self._tree = tree
        self._of_owner: dict[str, list[PossibleVictim]] = {}
        for one in candidates:
            self._of_owner.setdefault(owner_of(one.held), []).append(one)
        self._owners: dict[Share, list[str]] = {}
        """Below each share, in their order."""
        self._within: dict[Share, _Siblings] = {}
        self._parents: dict[Share, Share] = {}
        for owner in sorted(self._of_owner):
            above = tree.root
            for share in tree.path(owner):
                if share not in self._owners:
                    self._owners[share] = []
                    self._parents[share] = above
                    self._within.setdefault(above, _Siblings()).put(share)
                self._owners[share].append(owner)
                above = share

    def asked_by(self, request: PendingAllocation, gone: Container[str]) -> Iterator[PossibleVictim]:
        """Who may be asked to leave for ``request``, in order: with those before them gone, their shares keep no less
        than its own has with it. Allocations that are ``gone`` do not count."""
        self._put_in_place()
        given: dict[Share, int] = {}
        for _, tied in groupby(self._larger_than(owner_of(request), request.slots), key=itemgetter(0)):
            owners = [(owner, gives, ours) for _, gives, ours in tied for owner in self._owners[gives]]
            owners.sort(key=itemgetter(0))
            for owner, gives, ours in owners:
                for one in self._of_owner[owner]:
                    if one.held.allocation in gone:
                        continue
                    after = given.get(gives, 0) + one.held.slots
                    if ours <= gives.ratio_with(-after):
                        given[gives] = after
                        yield one

    def _larger_than(self, owner: str, slots: int) -> Iterator[tuple[float, Share, float]]:
        """Minus the ratio of each share beside one of the path of ``owner`` that is not smaller than that would be with
        so many slots more, the share, and that ratio."""
        above, found = self._tree.root, []
        for mine in self._tree.path(owner):
            if (beside := self._within.get(above)) is not None:
                found.append(_with(mine.ratio_with(slots), beside, mine))
            above = mine
        return merge(*found, key=itemgetter(0)) if len(found) > 1 else iter(found[0] if found else ())

    def _put_in_place(self) -> None:
        for share in self._tree.take_changed():
            if (above := self._parents.get(share)) is not None:
                self._within[above].put(share)


def _with(ratio: float, beside: _Siblings, mine: Share) -> Iterator[tuple[float, Share, float]]:
    return ((minus_ratio, share, ratio) for minus_ratio, share in beside.larger_than(ratio, mine))
