"""A search whose code refuses whatever it is given ends; one whose code refuses only some of it goes on."""

from typing import Any

import msgspec
import pytest
from msgspec import Struct

from libs.searchers.actions import Create, Shutdown
from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

HPARAMS = {"x": {"type": "int", "minval": 1, "maxval": 9, "count": 9}}
ASHA = {"metric": "loss", "time_metric": "batches", "max_time": 9}
INVALID = ExitedReason.INVALID_HP


class Case(Struct):
    searcher: dict[str, Any]
    trials: int
    """How many are refused before the search ends: as many replacements as it was to have trials, and those that were
    replaced, and those that run at the same time."""


ENDS = [
    Case({"name": "random", "max_trials": 3, "max_concurrent_trials": 1}, 4),
    Case({"name": "random", "max_trials": 3, "max_concurrent_trials": 3}, 6),
    Case({"name": "async_halving", "num_rungs": 2, "max_trials": 5, "max_concurrent_trials": 1, **ASHA}, 6),
    Case({"name": "adaptive_asha", "max_trials": 5, "max_concurrent_trials": 1, **ASHA}, 7),
    Case({"name": "grid", "max_concurrent_trials": 2}, 9),
]


def search(section: dict[str, Any]) -> Run:
    run = Run(Searcher.create({"metric": "loss", **section}, HPARAMS, seed=0))
    run.start()
    return run


def refuse(run: Run) -> None:
    trial = next(iter(run.running.values()))
    run.exit_early(trial, INVALID)
    run.exit(trial)


@pytest.mark.parametrize("case", ENDS, ids=lambda case: f"{case.searcher['name']} {case.trials}")
def test_a_search_whose_code_refuses_every_point_ends_in_failure(case: Case) -> None:
    run = search(case.searcher)
    while run.running and len(run.trials) <= case.trials:
        refuse(run)
    assert len(run.trials) == case.trials
    [end] = run.shutdowns
    assert end.failure
    assert "refused the hyperparameters" in end.reason
    assert end.reason == run.searcher.refused


def test_what_still_runs_decides_whether_the_search_goes_on() -> None:
    run = search({"name": "random", "max_trials": 3, "max_concurrent_trials": 2})
    slow = run.running.pop(run.numbered(1).create.request_id)
    for _ in range(4):
        refuse(run)
    assert (run.running, run.shutdowns) == ({}, [])
    assert run.searcher.refused
    snapshot = msgspec.json.decode(msgspec.json.encode(run.searcher.snapshot()))
    section = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 2}
    run.searcher = Searcher.restore(section, HPARAMS, snapshot)
    [replacement] = run.report(slow, {"loss": 1})
    assert isinstance(replacement, Create)
    assert run.searcher.refused == ""
    run.exit(slow)
    while run.running:
        run.exit(next(iter(run.running.values())))
    assert run.shutdowns == [Shutdown()]
    assert len(run.trials) == 1 + 4 + 2


@pytest.mark.parametrize("reason", [ExitedReason.ERRORED, ExitedReason.USER_CANCELED])
def test_failing_is_no_sign_that_the_code_takes_hyperparameters(reason: ExitedReason) -> None:
    run = search({"name": "random", "max_trials": 2, "max_concurrent_trials": 2})
    other = run.running.pop(run.numbered(1).create.request_id)
    for _ in range(3):
        refuse(run)
    run.exit_early(other, reason)
    run.exit(other)
    assert [end.failure for end in run.shutdowns] == [True]


def test_reports_that_lack_the_metric_are_no_sign_either() -> None:
    run = search({"name": "async_halving", "num_rungs": 2, "max_trials": 2, "max_concurrent_trials": 2, **ASHA})
    other = run.running.pop(run.numbered(1).create.request_id)
    for _ in range(3):
        refuse(run)
    assert run.report(other, {"accuracy": 1}) == []
    assert run.searcher.refused


def test_now_and_then_a_refusal_never_ends_a_search() -> None:
    run = search({"name": "random", "max_trials": 20, "max_concurrent_trials": 1})
    while run.running:
        for _ in range(19):
            refuse(run)
        trial = next(iter(run.running.values()))
        run.report(trial, {"loss": 1})
        run.exit(trial)
    assert run.shutdowns == [Shutdown()]
    assert len(run.trials) == 20 * 20
