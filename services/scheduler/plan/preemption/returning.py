"""Victims that come back: for a while they start in free room, but nobody leaves for them.

Two things would send tasks to and fro otherwise: a victim that at once takes the place of the next one, which takes
that of another; and one that starts on slots that are kept for somebody, only because it could leave again, and does.
Both are left to others until it has rested. What is free and kept for nobody it takes at any time, and it gets a
reservation as anybody does, so no slot is idle for the sake of the pause, and nobody starves of it.
Source: docs/reference/scheduling.md 16 (B4).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from services.scheduler.plan.snapshot import PendingAllocation, PoolSnapshot

LONGEST_REST: Final = timedelta(hours=1)
_MOST_DOUBLED: Final = 20
"""Beyond that every pause is longer than the longest."""


def rest_after(times: int, min_runtime: timedelta) -> timedelta:
    """How long a task rests that was preempted so many times: the time for which it would have been safe, twice as long
    after each further time."""
    if times < 1:
        return timedelta()
    return min(min(min_runtime, LONGEST_REST) * (1 << min(times - 1, _MOST_DOUBLED)), LONGEST_REST)


def is_resting(request: PendingAllocation, pool: PoolSnapshot) -> bool:
    """Whether it has come back so lately that nobody leaves for it."""
    if not request.preempted:
        return False
    return pool.now < request.requested_at + rest_after(request.preempted, pool.policy.min_runtime)
