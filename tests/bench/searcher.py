"""Microseconds that a search by async_halving takes for a validation report, with 10,000 trials against 1,000.

About ten reports for each trial. What a search knows grows with its trials; the cost of a report may grow with the
logarithm of that.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from typing import Final

from libs.searchers.actions import Create, Stop
from libs.searchers.searcher import Searcher
from tests.bench.result import Result
from tests.bench.system import BenchSystem

FEW: Final = 1_000
MANY: Final = 10_000
CONCURRENT: Final = 100
LONGEST: Final = 768
ROUNDS: Final = 3


async def measure(_: BenchSystem) -> list[Result]:
    few, many = [], []
    # Alternating, so that what else the machine does hits both.
    for _ in range(ROUNDS):
        few.append(report_us(FEW))
        many.append(report_us(MANY))
    return [
        Result(
            name="search of 10k trials: a report, against 1k trials",
            value=min(many),
            unit="us",
            baseline=min(few),
            goal=math.log(MANY) / math.log(FEW),
            better="lower",
        )
    ]


def report_us(trials: int) -> float:
    """Of a search from its first trial to its last."""
    section = {
        "name": "async_halving",
        "metric": "loss",
        "smaller_is_better": True,
        "max_trials": trials,
        "max_concurrent_trials": CONCURRENT,
        "num_rungs": 5,
        "divisor": 4,
        "time_metric": "batches",
        "max_time": LONGEST,
    }
    search = Searcher.create(section, {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}, 7)
    rng = random.Random(7)
    running: deque[tuple[str, int]] = deque()
    began, reports = time.perf_counter(), 0
    actions = search.initial_trials()
    while actions or running:
        stopped = {action.request_id for action in actions if isinstance(action, Stop)}
        for action in actions:
            if isinstance(action, Create):
                search.trial_created(action.request_id)
                running.append((action.request_id, 0))
        actions = []
        for request_id in stopped:
            search.trial_exited(request_id)
        if not running:
            break
        request_id, done = running.popleft()
        reports += 1
        actions = search.validation_completed(request_id, {"loss": rng.random(), "batches": done + 1})
        if not any(isinstance(action, Stop) and action.request_id == request_id for action in actions):
            running.append((request_id, done + 1))
    return (time.perf_counter() - began) / reports * 1e6
