"""Queue of the jobs that wait: by priority, then by submission, and grouped by shape.

A policy that knows that a shape has no room need not look at any other job of it, of which there may be thousands.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator

from tests.load.simulate.traces.job import Job, Shape

Rank = tuple[int, int]


class Queue:
    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._by_shape: dict[Shape, list[Rank]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, number: int) -> bool:
        return number in self._jobs

    def __iter__(self) -> Iterator[Job]:
        """Jobs in the order in which they came into the queue."""
        return iter(self._jobs.values())

    def add(self, job: Job) -> None:
        self._jobs[job.number] = job
        insort(self._by_shape.setdefault(job.shape, []), _rank(job))

    def remove(self, number: int) -> Job:
        job = self._jobs.pop(number)
        ranks = self._by_shape[job.shape]
        del ranks[bisect_left(ranks, _rank(job))]
        if not ranks:
            del self._by_shape[job.shape]
        return job

    def first(self) -> Job | None:
        """The job whose turn it is."""
        if not self._by_shape:
            return None
        return self._jobs[min(ranks[0] for ranks in self._by_shape.values())[1]]

    def shapes(self) -> list[Shape]:
        """Shapes of the jobs that wait."""
        return list(self._by_shape)

    def walk(self) -> Walk:
        return Walk(self._jobs, self._by_shape)


class Walk:
    """All jobs by rank, once each. Jobs may leave the queue meanwhile, and none may enter."""

    def __init__(self, jobs: dict[int, Job], by_shape: dict[Shape, list[Rank]]) -> None:
        self._jobs = jobs
        self._by_shape = by_shape
        self._dropped: set[Shape] = set()

    def drop(self, shape: Shape) -> None:
        """Skip what else there is of ``shape``."""
        self._dropped.add(shape)

    def __iter__(self) -> Iterator[Job]:
        ahead = [(ranks[0], shape) for shape, ranks in self._by_shape.items() if shape not in self._dropped]
        heapq.heapify(ahead)  # no two ranks are the same, so that shapes are never compared
        position = {shape: 0 for _, shape in ahead}
        while ahead:
            rank, shape = ahead[0]
            if shape not in self._dropped:
                yield self._jobs[rank[1]]
            ranks = self._by_shape.get(shape, [])
            if position[shape] < len(ranks) and ranks[position[shape]] == rank:
                position[shape] += 1  # it still waits; where it has left, the next one has moved up
            if shape in self._dropped or position[shape] >= len(ranks):
                heapq.heappop(ahead)
            else:
                heapq.heapreplace(ahead, (ranks[position[shape]], shape))


def _rank(job: Job) -> Rank:
    return job.priority, job.number
