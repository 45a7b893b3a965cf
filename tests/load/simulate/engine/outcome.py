"""Outcome of a simulation: what became of each job, and how many slots were in use when."""

from __future__ import annotations

from msgspec import Struct

from tests.load.simulate.cluster import Workload
from tests.load.simulate.traces.job import Job


class JobOutcome(Struct, kw_only=True):
    job: Job
    estimate_s: float
    """Of its run time, made when it was submitted."""
    started_s: float | None = None
    """When it first started; None when it never did."""
    ended_s: float | None = None
    evictions: int = 0
    lost_s: float = 0.0
    """Run time that had to be repeated because it was evicted."""
    foreseen_s: float | None = None
    """The first instant for which its start was foreseen."""


class Usage(Struct, frozen=True, gc=False):
    """Slots from ``at_s`` on, until the next one of these."""

    at_s: float
    running: int
    """Slots of jobs that run."""
    idle_bound: int
    """Slots of pods that wait for the rest of their gang."""


class Outcome(Struct, frozen=True, kw_only=True):
    policy: str
    workload: Workload
    jobs: tuple[JobOutcome, ...]
    """In the order of submission."""
    usage: tuple[Usage, ...]
    ended_s: float
    """The last instant at which anything happened."""
    plans: int
    """How often the policy was asked."""
