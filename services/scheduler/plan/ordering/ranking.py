"""Ranks allocations: by what the policy calls their level, then by the age of the job, then by that of the request.

A strict total order, so that a standby that takes over arrives at the same queue. Source:
docs/reference/scheduling.md 5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from libs.job_rank import job_rank
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolPolicy

Rank = tuple[int, datetime, str, datetime, str]
"""Level, submission and id of the job, request and id of the allocation; the smallest is first."""


def ranking(policy: PoolPolicy) -> Callable[[PendingAllocation | HeldAllocation], Rank]:
    """The rank of an allocation. Only the policy ``priority`` has more than one level."""
    has_levels = policy.queue == "priority"
    larger_first = policy.larger_priority_first

    def rank(one: PendingAllocation | HeldAllocation) -> Rank:
        level = one.priority if has_levels else 0
        job = job_rank(level, one.submitted_at, one.job, larger_first)
        return *job, one.requested_at, one.allocation

    return rank
