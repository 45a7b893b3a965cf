"""The bookkeeping around every method: how a search ends, and events that come twice, late or for nobody."""

import copy
from typing import Any

import pytest

from libs.searchers.actions import Shutdown
from libs.searchers.errors import UnknownTrialError
from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

RANDOM = {"name": "random", "max_trials": 2, "max_concurrent_trials": 2, "metric": "loss"}
HPARAMS = {"x": {"type": "int", "minval": 0, "maxval": 10}}
ERRORED, CANCELED, INVALID = ExitedReason.ERRORED, ExitedReason.USER_CANCELED, ExitedReason.INVALID_HP


def random_run(trials: int = 2) -> Run:
    run = Run(Searcher.create({**RANDOM, "max_trials": trials, "max_concurrent_trials": 0}, HPARAMS, seed=0))
    run.start()
    return run


ENDINGS = [  # docs/reference/experiments.md 3.1: a search fails only if every trial failed
    ("all completed", [None, None], Shutdown()),
    ("all errored", [ERRORED, ERRORED], Shutdown(failure=True)),
    ("all canceled", [CANCELED, CANCELED], Shutdown(cancel=True)),
    ("one errored, one canceled", [ERRORED, CANCELED], Shutdown()),
    ("nine errored, one completed", [ERRORED] * 9 + [None], Shutdown()),
]


@pytest.mark.parametrize(("reasons", "expected"), [case[1:] for case in ENDINGS], ids=[case[0] for case in ENDINGS])
def test_how_a_search_ends(reasons: list[ExitedReason | None], expected: Shutdown) -> None:
    run = random_run(len(reasons))
    for trial, reason in zip(list(run.trials.values()), reasons, strict=True):
        if reason is not None:
            run.exit_early(trial, reason)
        run.exit(trial)
    assert run.shutdowns == [expected]


def test_a_single_trial_with_invalid_hyperparameters_ends_the_search_without_failure() -> None:
    run = Run(Searcher.create({"name": "single", "metric": "loss"}, HPARAMS, seed=0))
    run.start()
    run.exit_early(run.numbered(1), INVALID)
    assert run.exit(run.numbered(1)) == [Shutdown()]


def test_invalid_trials_keep_a_search_from_counting_as_failed() -> None:
    run = random_run(1)
    run.exit_early(run.numbered(1), INVALID)
    run.exit(run.numbered(1))
    run.exit_early(run.numbered(2), ERRORED)
    run.exit(run.numbered(2))
    assert run.shutdowns == [Shutdown()]


def test_events_may_come_twice() -> None:
    run = random_run()
    first = run.numbered(1)
    run.exit_early(first, INVALID)
    once = run.searcher.snapshot()
    assert run.exit_early(first, INVALID) == run.exit_early(first, ERRORED) == []
    assert run.start() == []
    assert run.searcher.trial_created(first.create.request_id) == []
    assert run.searcher.snapshot() == once
    assert len(run.exit(first)) == 1
    once = run.searcher.snapshot()
    assert run.exit(first) == run.exit_early(first, ERRORED) == run.report(first, {"loss": 1}) == []
    assert run.searcher.trial_created(first.create.request_id) == []
    assert run.searcher.snapshot() == once


def test_a_second_exit_of_the_last_trial_does_not_end_the_search_again() -> None:
    run = random_run(1)
    assert run.exit(run.numbered(1)) == [Shutdown()]
    assert run.exit(run.numbered(1)) == []


@pytest.mark.parametrize("method", ["validation_completed", "trial_exited", "trial_exited_early", "set_trial_progress"])
def test_trials_that_were_never_created_are_refused(method: str) -> None:
    arguments: dict[str, list[Any]] = {
        "validation_completed": [{}],
        "trial_exited_early": [ERRORED],
        "set_trial_progress": [0.5],
    }
    with pytest.raises(UnknownTrialError, match="'nobody' is not part of this search"):
        getattr(random_run().searcher, method)("nobody", *arguments.get(method, []))


def test_trial_progress_only_goes_up_and_stays_between_0_and_1() -> None:
    run = random_run(1)
    request_id = run.numbered(1).create.request_id
    seen = []
    for value in (0.25, 0.5, 0.3, 1.5, -1, float("nan"), 0.75):
        run.searcher.set_trial_progress(request_id, value)
        seen.append(run.searcher.progress())
    assert seen == [0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75]


def test_progress_of_a_trial_that_is_over_is_dropped() -> None:
    run = random_run(2)
    run.exit_early(run.numbered(1), INVALID)
    run.searcher.set_trial_progress(run.numbered(1).create.request_id, 0.5)
    assert run.searcher.progress() == 0


def test_random_methods_need_no_metric() -> None:
    assert random_run().searcher.missing_metrics({}) == ()


def test_shape_of_the_snapshot() -> None:
    run = random_run()
    first, second = (trial.create.request_id for trial in run.trials.values())
    run.exit_early(run.numbered(1), ERRORED)
    run.exit(run.numbered(1))
    run.searcher.set_trial_progress(second, 0.5)
    snapshot = run.searcher.snapshot()
    rand, _ = snapshot.pop("rand"), snapshot.pop("search_method_state")
    assert (len(rand["key"]), rand.keys()) == (624, {"key", "pos"})
    assert snapshot == {
        "trials_requested": 2,
        "trials_created": {first: True, second: True},
        "trials_closed": {first: True},
        "exits": {first: True},
        "cancels": {},
        "failures": {first: True},
        "trial_progress": {first: 0.0, second: 0.5},
        "refusals": {"in_a_row": 0, "withheld": []},
    }


ADAPTIVE = {
    "name": "adaptive_asha",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 90,
    "max_trials": 9,
    "max_concurrent_trials": 1,
}


@pytest.mark.parametrize("section", [RANDOM, {"name": "grid", "max_concurrent_trials": 1}, ADAPTIVE])
def test_a_snapshot_and_the_search_that_made_it_go_separate_ways(section: dict[str, Any]) -> None:
    hparams = {"x": {"type": "categorical", "vals": [1, 2, 3]}}
    run = Run(Searcher.create(section, hparams, seed=0))
    run.start()
    snapshot = run.searcher.snapshot()
    before = copy.deepcopy(snapshot)
    for searcher in (Searcher.restore(section, hparams, snapshot), run.searcher):
        searcher.trial_exited_early(run.numbered(1).create.request_id, CANCELED)
        searcher.trial_exited(run.numbered(1).create.request_id)
    assert snapshot == before
