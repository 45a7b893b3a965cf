"""In which order the classes of a queue are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Protocol

from services.scheduler.plan.ordering.backfill import expansion
from services.scheduler.plan.ordering.queue_classes import QueueClass
from services.scheduler.plan.ordering.ranking import Rank


class QueueOrder(Protocol):
    """Each class that is popped is put back, as long as something is left of it that may start, or else closed."""

    def pop(self) -> QueueClass | None:
        """The class whose first request is to be looked at next; None at the end."""

    def put_back(self, queue: QueueClass) -> None:
        """Its first request is dealt with; others may be left."""

    def close(self, queue: QueueClass) -> None:
        """None of its requests can start in this plan."""

    def block(self, level: int) -> None:
        """The first of a level has no room: those that come now pass it."""

    def update(self, owner: str) -> None:
        """A share uses more than before, by a request that was in none of the classes."""


class RankOrder:
    """By rank: ``priority``, and ``fifo``, which has one level. Who passes another one comes by expansion factor
    (backfill.py)."""

    def __init__(self, queues: Iterable[QueueClass], now: datetime) -> None:
        self._now = now
        self._heap = [(queue.rank, queue) for queue in queues]
        heapify(self._heap)
        self._blocked_level: int | None = None
        self._passing: list[tuple[float, Rank, QueueClass]] = []
        """Classes of the level that is blocked; no two have the same rank."""

    def pop(self) -> QueueClass | None:
        if self._passing:
            return heappop(self._passing)[2]
        return heappop(self._heap)[1] if self._heap else None

    def put_back(self, queue: QueueClass) -> None:
        if not queue:
            return
        if queue.rank[0] == self._blocked_level:
            heappush(self._passing, self._passed_by(queue))
        else:
            heappush(self._heap, (queue.rank, queue))

    def close(self, queue: QueueClass) -> None:
        """Nothing: it is not in the heap."""

    def block(self, level: int) -> None:
        if level == self._blocked_level:
            return
        self._blocked_level = level
        while self._heap and self._heap[0][0][0] == level:
            self._passing.append(self._passed_by(heappop(self._heap)[1]))
        heapify(self._passing)

    def update(self, owner: str) -> None:
        """Nothing: use does not count."""

    def _passed_by(self, queue: QueueClass) -> tuple[float, Rank, QueueClass]:
        return -expansion(queue.first, queue.rank[1], self._now), queue.rank, queue
