"""In which order the classes of a queue are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Protocol

from services.scheduler.plan.ordering.queue_classes import QueueClass


class QueueOrder(Protocol):
    """Each class that is popped is put back, as long as something is left of it that may start, or else closed."""

    def pop(self) -> QueueClass | None:
        """The class whose first request is to be looked at next; None at the end."""

    def put_back(self, queue: QueueClass) -> None:
        """Its first request is dealt with; others may be left."""

    def close(self, queue: QueueClass) -> None:
        """None of its requests can start in this plan."""


class RankOrder:
    """By rank alone: ``priority``, and ``fifo``, which has one level."""

    def __init__(self, queues: Iterable[QueueClass]) -> None:
        self._heap = list(queues)
        heapify(self._heap)

    def pop(self) -> QueueClass | None:
        return heappop(self._heap) if self._heap else None

    def put_back(self, queue: QueueClass) -> None:
        if queue:
            heappush(self._heap, queue)

    def close(self, queue: QueueClass) -> None:
        """Nothing: it is not in the heap."""
