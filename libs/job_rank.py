"""Rank of a job in the queue of its pool, for the planner that starts jobs and for what clients are told of it.

More important jobs come first, then older ones. Source: docs/reference/scheduling.md 5.2. Pure.
"""

from __future__ import annotations

from datetime import datetime

JobRank = tuple[int, datetime, str]


def job_rank(priority: int, submitted_at: datetime, job_id: str, larger_priority_first: bool) -> JobRank:
    """Where a job stands: the smallest rank is the first in the queue, and no two jobs have the same.

    larger_priority_first  as on Kubernetes, where the larger priority is the more important one
    """
    return -priority if larger_priority_first else priority, submitted_at, job_id
