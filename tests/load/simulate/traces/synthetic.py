"""Invents a day of 20,000 jobs, the same for each seed: what no published trace has together, priorities among it.

Submissions follow the hours of a working day, sizes are mostly single GPUs with gangs of up to 64, run times are
log-normal and longer for larger jobs, and few users submit most of the jobs.
"""

from __future__ import annotations

import math
import random

from tests.load.simulate.traces.job import Job, Trace

JOBS = 20_000
DAY_S = 86_400.0
USERS = 100
# Number of pods and slots of each, and how many of a hundred jobs have them.
SHAPES = {(1, 1): 62, (1, 2): 10, (1, 4): 10, (1, 8): 12, (2, 8): 3, (4, 8): 2, (8, 8): 1}
# Smaller starts first; how many of a hundred jobs have each.
PRIORITIES = {30: 5, 42: 75, 60: 20}
MEDIAN_S = 240.0
SIGMA = 1.7
LONGEST_S = 6 * 3600.0


def synthetic_day(*, jobs: int = JOBS, seed: int = 7) -> Trace:
    rng = random.Random(seed)
    users = [f"user{number:03}" for number in range(USERS)]
    weights = [1 / (rank + 1) for rank in range(USERS)]
    submissions = sorted(_instant(rng) for _ in range(jobs))
    return Trace(
        name="synthetic",
        jobs=tuple(
            _job(rng, number, submitted_s - submissions[0], rng.choices(users, weights)[0])
            for number, submitted_s in enumerate(submissions)
        ),
    )


def _instant(rng: random.Random) -> float:
    """Drawn so that an hour at three in the afternoon has four times the submissions of one at three in the night."""
    while True:
        at_s = rng.uniform(0, DAY_S)
        busy = 0.625 + 0.375 * math.sin(2 * math.pi * (at_s / DAY_S - 0.375))
        if rng.random() < busy:
            return at_s


def _job(rng: random.Random, number: int, submitted_s: float, user: str) -> Job:
    pods, slots = rng.choices(list(SHAPES), list(SHAPES.values()))[0]
    median_s = MEDIAN_S * (pods * slots) ** 0.25
    return Job(
        number=number,
        user=user,
        submitted_s=submitted_s,
        run_s=float(round(min(LONGEST_S, max(1.0, rng.lognormvariate(math.log(median_s), SIGMA))))),
        pods=pods,
        slots_per_pod=slots,
        priority=rng.choices(list(PRIORITIES), list(PRIORITIES.values()))[0],
    )
