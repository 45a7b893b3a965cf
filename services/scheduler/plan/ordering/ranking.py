"""Ranks allocations: by what the policy calls their level, then by the position of the job, then by the age of the
request.

A strict total order, so that a standby that takes over arrives at the same queue. Source:
docs/reference/scheduling.md 5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from libs.job_rank import job_rank
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolPolicy

Rank = tuple[int, datetime, int, str, datetime, str]
"""Level, position (two parts) and id of the job, request and id of the allocation; the smallest is first."""


def ranking(policy: PoolPolicy) -> Callable[[PendingAllocation | HeldAllocation], Rank]:
    """The rank of an allocation. Only the policy ``priority`` has more than one level, and
    where slots are shared out nobody was moved."""
    has_levels = policy.queue == "priority"
    has_line = policy.queue in ("priority", "fifo")
    larger_first = policy.larger_priority_first

    def rank(one: PendingAllocation | HeldAllocation) -> Rank:
        level = one.priority if has_levels else 0
        job = job_rank(level, one.submitted_at, one.job, larger_first, one.position if has_line else None)
        return *job, one.requested_at, one.allocation

    return rank
