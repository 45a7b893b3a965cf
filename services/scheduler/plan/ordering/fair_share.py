"""Weighted max-min fairness over a tree of shares: next is who holds least in relation to their weight.

A share is a user, a group, a workspace or a job; a path such as ``research/ann`` stands for a share within another. At
each level of the tree the child with the smallest use per weight comes first ("progressive filling": Bertsekas and
Gallager, Data Networks, 6.5.2; as a queue of tasks: Ghodsi et al., Dominant Resource Fairness, 2011). Among equals it
is the one whose request has waited longest, so that they take turns. Source: docs/reference/scheduling.md 5.3.

A pool may remember what was used. Then the slots that a share has used lately, as an average that is forgotten by its
half-life, count beside those that it holds: who has used more than others gets less until they have caught up, and in
the long run use is as the weights say, to less than the slots of one request. Source: the decayed usage of Slurm's fair
tree (https://slurm.schedmd.com/fair_tree.html) and the time-aware fairness of KAI-Scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from services.scheduler.plan.ordering.queue_classes import QueueClass
from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation

_Key = tuple[float, datetime, float, Rank]
_NO_PAST: Final[Mapping[str, float]] = {}


class Share:
    """A node of the tree."""

    __slots__ = ("children", "past", "queues", "used", "waiting", "wanted", "weight")

    def __init__(self, weight: float, past: float) -> None:
        self.weight = weight
        self.past = past
        """Slots that it has used on average."""
        self.used = 0.0
        """Apart from that: whole numbers add up to the same in any order."""
        self.wanted = 0.0
        self.children: dict[str, Share] = {}
        self.waiting: list[tuple[_Key, str]] = []
        """Children of which something waits."""
        self.queues: list[tuple[Rank, QueueClass]] = []
        """Of a leaf."""

    @property
    def ratio(self) -> float:
        return self.ratio_with(0)

    def ratio_with(self, slots: float) -> float:
        """Use per weight if it used so many slots more."""
        used = self.used + slots + self.past
        return used / self.weight if self.weight > 0 else (inf if used > 0 else 0.0)

    @property
    def rank(self) -> Rank:
        """Of the first request below; only of a share where something waits."""
        return self.queues[0][0] if self.queues else self.children[self.waiting[0][1]].rank

    @property
    def key(self) -> _Key:
        rank = self.rank
        return self.ratio, rank[4], self.wanted, rank


class ShareTree:
    """What each share uses. ``units_of`` says what an allocation counts: its slots, or one; ``past`` what shares have
    used, by their paths, where that is remembered."""

    def __init__(
        self, weights: Mapping[str, float], units_of: Callable[[int], float], past: Mapping[str, float] = _NO_PAST
    ) -> None:
        self._weights = weights
        self._units_of = units_of
        self._past = past
        self.root = Share(1.0, 0.0)
        self._paths: dict[str, list[Share]] = {}
        self._changed: set[Share] = set()
        self._parted: dict[tuple[str, str], tuple[Share, Share] | None] = {}

    def add(self, owner: str, slots: int) -> None:
        """``owner`` holds, or is about to hold, an allocation of so many slots."""
        self._change(owner, self._units_of(slots))

    def want(self, owner: str, slots: int, times: int = 1) -> None:
        units = self._units_of(slots) * times
        for share in self.path(owner):
            share.wanted += units

    def path(self, owner: str) -> list[Share]:
        """The shares from below the root to that of ``owner``."""
        found = self._paths.get(owner)
        if found is None:
            found = self._paths[owner] = self._make(owner)
        return found

    def _make(self, owner: str) -> list[Share]:
        here, found, name = self.root, [], ""
        for part in owner.split("/"):
            name = f"{name}/{part}" if name else part
            child = here.children.get(part)
            if child is None:
                child = here.children[part] = Share(self._weights.get(name, 1.0), self._past.get(name, 0.0))
            found.append(child)
            here = child
        return found

    def part(self, mine: str, theirs: str) -> tuple[Share, Share] | None:
        """The two shares where the paths part, to be compared; None when one is within the other."""
        key = (mine, theirs)
        if key not in self._parted:
            pairs = zip(self.path(mine), self.path(theirs), strict=False)
            self._parted[key] = next(((one, other) for one, other in pairs if one is not other), None)
        return self._parted[key]

    def gives_way(self, theirs: str, mine: str, slots: int, *, to_equals: bool) -> bool:
        """Whether the share of ``mine`` with an allocation of so many slots more uses less than that of ``theirs`` uses
        already, or as much; False for requests of one share.

        to_equals  as much will do
        """
        parted = self.part(mine, theirs)
        if parted is None:
            return False
        after, uses = parted[0].ratio_with(self._units_of(slots)), parted[1].ratio
        return after < uses or (to_equals and after == uses)

    def take_changed(self) -> Collection[Share]:
        """Those that use more or less than when this was asked last."""
        found, self._changed = self._changed, set()
        return found

    def _change(self, owner: str, units: float) -> None:
        for share in self.path(owner):
            share.used += units
            self._changed.add(share)


class FairShareOrder:
    """The classes of each leaf by rank, and leaves by their use."""

    def __init__(self, tree: ShareTree, queues: Mapping[str, Iterable[QueueClass]]) -> None:
        self._tree = tree
        self._popped: list[tuple[Share, str]] = []
        for owner, classes in queues.items():
            path = tree.path(owner)
            path[-1].queues = [(queue.rank, queue) for queue in classes]
            heapify(path[-1].queues)
        self._fill(tree.root)

    def pop(self) -> QueueClass | None:
        here = self._tree.root
        self._popped = []
        while here.waiting:
            _, name = heappop(here.waiting)
            self._popped.append((here, name))
            here = here.children[name]
        return heappop(here.queues)[1] if here.queues else None

    def put_back(self, queue: QueueClass) -> None:
        if queue:
            parent, name = self._popped[-1]
            heappush(parent.children[name].queues, (queue.rank, queue))
        self._return_path()

    def close(self, queue: QueueClass) -> None:
        self._return_path()

    def block(self, level: int) -> None:
        """Nothing: shares decide who passes."""

    def update(self, owner: str) -> None:
        """Put the shares of ``owner`` where they belong in the heaps, by what they use now."""
        path = [self._tree.root, *self._tree.path(owner)]
        for parent, name, child in reversed(list(zip(path, owner.split("/"), path[1:], strict=False))):
            parent.waiting = [entry for entry in parent.waiting if entry[1] != name]
            if child.queues or child.waiting:
                parent.waiting.append((child.key, name))
            heapify(parent.waiting)

    def _return_path(self) -> None:
        """Put what was popped back into the heaps, with what it uses now."""
        for parent, name in reversed(self._popped):
            child = parent.children[name]
            if child.queues or child.waiting:
                heappush(parent.waiting, (child.key, name))
        self._popped = []

    def _fill(self, share: Share) -> None:
        for name, child in share.children.items():
            self._fill(child)
            if child.queues or child.waiting:
                heappush(share.waiting, (child.key, name))


def owner_of(one: PendingAllocation | HeldAllocation) -> str:
    """Whose share it counts to: its own, or that of its job."""
    return one.share or one.job
