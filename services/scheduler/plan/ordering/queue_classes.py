"""Pending allocations in classes: those of one class differ only in their rank, so that when the first of them finds
no room, none does. A plan looks at the first of each class, and costs as much as there are classes and starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Final

from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.ordering.backfill import magnitude
from services.scheduler.plan.ordering.ranking import Rank
from services.scheduler.plan.snapshot import PendingAllocation

_ALIKE: Final = attrgetter(
    "pods",
    "most_per_pod",
    "preemptible",
    "namespace",
    "limits",
    "blocked_nodes",
    "topology",
    "closed_nodes",
    "runs_for",
    "grows",
)
"""What those of one class have in common, beside what their pods require and what follows from the moment of the
plan."""


class QueueClass:
    """Requests that are alike, in the order of their ranks."""

    __slots__ = ("_next", "_requests", "first", "kind", "rank")

    def __init__(self, requests: list[tuple[Rank, PendingAllocation]], kind: int | None = None) -> None:
        self._requests = requests
        self.kind = kind
        """The same for those of other shares and jobs that are alike in all else; None of one that nothing is like."""
        self._next = 0
        self.rank, self.first = requests[0]
        """The first that is left; the last one when none is."""

    def __len__(self) -> int:
        """Those that are left."""
        return len(self._requests) - self._next

    def advance(self) -> None:
        """The first has started, or waits for something of its own."""
        self._next += 1
        if self._next < len(self._requests):
            self.rank, self.first = self._requests[self._next]

    def rest(self) -> list[PendingAllocation]:
        """Those that are left."""
        return [request for _, request in self._requests[self._next :]]


def classify(
    requests: Iterable[PendingAllocation],
    *,
    rank: Callable[[PendingAllocation], Rank],
    share: Callable[[PendingAllocation], str],
    kind: Callable[[PodRequirements | None], int],
    limited_jobs: Collection[str],
    rests: Callable[[PendingAllocation], bool],
) -> dict[str, list[QueueClass]]:
    """The classes of ``requests``, by share.

    share         whose part of the pool it is, where the policy divides it; else ""
    kind          a number that equal requirements have in common
    limited_jobs  jobs that may not hold more than so many slots: each has classes of its own
    rests         whether nobody leaves for it at present
    """
    classes: dict[tuple[str, int, tuple[object, ...], int, bool, int, str], list[tuple[Rank, PendingAllocation]]] = {}
    owners: dict[str, list[QueueClass]] = {}
    for one in requests:
        ranked = rank(one)
        owner = share(one)
        key = (
            owner,
            ranked[0],
            _ALIKE(one),
            kind(one.needs),
            one.preempted > 0 and rests(one),
            magnitude(one),
            one.job if one.job in limited_jobs else "",
        )
        alike = classes.get(key)
        if alike is None:
            classes[key] = [(ranked, one)]
        else:
            alike.append((ranked, one))
    kinds: dict[tuple[object, ...], int] = {}
    for key, alike in classes.items():
        alike.sort()
        number = kinds.setdefault(key[1:-1], len(kinds))
        owners.setdefault(key[0], []).append(QueueClass(alike, number))
    return owners
