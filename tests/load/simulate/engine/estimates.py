"""Estimates of run times: what a scheduler can know about a job whose owner declares nothing.

The estimate of a job is the median run time of those jobs of its user that had ended when it was submitted. For a user
without any it is the median of all users, and for the first jobs of a trace one hour. A job that outlives its estimate
is expected to run twice as long as was thought, as often as that is needed.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict

from tests.load.simulate.traces.job import Job

FIRST_ESTIMATE_S = 3600.0


class PastMedians:
    def __init__(self) -> None:
        self._run_s: list[float] = []
        self._run_s_by_user: dict[str, list[float]] = defaultdict(list)

    def estimate_s(self, job: Job) -> float:
        past = self._run_s_by_user.get(job.user) or self._run_s
        return max(1.0, past[len(past) // 2]) if past else FIRST_ESTIMATE_S

    def ended(self, job: Job) -> None:
        insort(self._run_s, job.run_s)
        insort(self._run_s_by_user[job.user], job.run_s)


def expected_end_s(started_s: float, estimate_s: float, now: float) -> float:
    """When a job that has been running since ``started_s`` is expected to end; always later than ``now``."""
    ran_s = now - started_s
    while estimate_s <= ran_s:
        estimate_s *= 2
    return started_s + estimate_s
