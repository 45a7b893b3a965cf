"""Searches from the first trial to Shutdown, with trials of which each is worse than the one before."""

from collections import Counter
from typing import Any

import pytest
from msgspec import Struct

from libs.searchers.actions import Shutdown
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

POINTS = {"x": {"type": "int", "minval": 0, "maxval": 3, "count": 4}}
HALVING = {"metric": "loss", "time_metric": "batches", "divisor": 3, "max_concurrent_trials": 3}


class Case(Struct):
    section: dict[str, Any]
    max_time: int
    stopped: dict[int, int]  # time -> trials that the search stopped there
    completed: int = 0


CASES = [  # docs/reference/experiments.md 3.2 - 3.5
    Case({"name": "single"}, 300, {}, completed=1),
    Case({"name": "random", "max_trials": 4, "max_concurrent_trials": 2}, 300, {}, completed=4),
    Case({"name": "grid", "max_concurrent_trials": 2}, 300, {}, completed=4),
    Case(
        {"name": "async_halving", "num_rungs": 3, "max_time": 900, "max_trials": 10, **HALVING}, 900, {900: 1, 100: 9}
    ),
    Case(
        {"name": "adaptive_asha", "max_rungs": 5, "max_time": 90, "max_trials": 9, **HALVING}, 90, {90: 2, 30: 2, 10: 5}
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.section["name"])
def test_whole_run(case: Case) -> None:
    run = Run(Searcher.create(case.section, POINTS, seed=0))
    run.train(max_time=case.max_time, every=case.max_time // 9)
    assert Counter(trial.time for trial in run.trials.values() if trial.stopped) == case.stopped
    assert sum(not trial.stopped for trial in run.trials.values()) == case.completed
    assert run.shutdowns == [Shutdown()]
    assert run.searcher.progress() == 1


def test_grid_covers_every_point() -> None:
    run = Run(Searcher.create({"name": "grid", "max_concurrent_trials": 2}, POINTS, seed=0))
    run.train(max_time=300, every=100)
    assert {trial.create.hparams["x"] for trial in run.trials.values()} == {0, 1, 2, 3}


def test_brackets_of_an_adaptive_run() -> None:
    run = Run(Searcher.create(CASES[-1].section, POINTS, seed=0))
    run.train(max_time=90, every=10)
    table = run.searcher.snapshot()["search_method_state"]["trial_table"]
    times = [Counter(run.trials[trial].time for trial in table if table[trial] == bracket) for bracket in (0, 1)]
    assert times == [{90: 1, 10: 5}, {90: 1, 30: 2}]
