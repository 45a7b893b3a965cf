"""Ranks pending allocations: priority first, then the age of the job, then the age of the request.

A strict total order, so that a standby that takes over arrives at the same queue. Source:
docs/reference/scheduling.md 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby

from libs.job_rank import job_rank
from services.scheduler.plan.snapshot import PendingAllocation


def ranked(requests: Iterable[PendingAllocation], *, larger_priority_first: bool) -> list[PendingAllocation]:
    def rank(request: PendingAllocation) -> tuple[int, datetime, str, datetime, str]:
        job = job_rank(request.priority, request.submitted_at, request.job, larger_priority_first)
        return *job, request.requested_at, request.allocation

    return sorted(requests, key=rank)


def by_priority(queue: Iterable[PendingAllocation]) -> Iterator[list[PendingAllocation]]:
    """The requests of each priority together; ``queue`` is ranked."""
    for _, same in groupby(queue, key=lambda request: request.priority):
        yield list(same)
