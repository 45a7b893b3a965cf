"""Rank of a job in the queue of its pool, for the planner that starts jobs and for what clients are told of it.

More important jobs come first, then those with the smaller position. A position is a whole number, in units of 10^-30
microseconds since 1970: that of a job is the time of its submission, until somebody moves it ahead of or behind another
one. Source: docs/reference/scheduling.md 5.2. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

JobRank = tuple[int, datetime, int, str]
"""Level, position in whole microseconds and what is left of it, id of the job."""

MICROSECOND: Final = 10**30
"""In units of positions."""
_EPOCH: Final = datetime.fromtimestamp(0, tz=UTC)
_STEP: Final = timedelta(microseconds=1)


def job_rank(
    priority: int, submitted_at: datetime, job_id: str, larger_priority_first: bool, position: int | None = None
) -> JobRank:
    """Where a job stands: the smallest rank is the first in the queue, and no two jobs have the same.

    larger_priority_first  as on Kubernetes, where the larger priority is the more important one
    position               of a job that was moved; None is the time of its submission
    """
    level = -priority if larger_priority_first else priority
    if position is None:
        return level, submitted_at, 0, job_id
    whole, rest = divmod(position, MICROSECOND)
    return level, _EPOCH + whole * _STEP, rest, job_id


def position_at(moment: datetime) -> int:
    """The position of a job that is submitted at ``moment``."""
    return (moment - _EPOCH) // _STEP * MICROSECOND
