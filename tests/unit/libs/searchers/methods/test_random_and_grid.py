"""random, single and grid: how many trials at a time, what is replaced, and progress that only goes up."""

from typing import Any

import pytest

from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

FOUR_POINTS = {"x": {"type": "int", "minval": 0, "maxval": 3, "count": 4}}


def started(section: dict[str, Any], hparams: dict[str, Any] | None = None) -> Run:
    run = Run(Searcher.create(section, FOUR_POINTS if hparams is None else hparams, seed=0))
    run.start()
    return run


def random_run(max_trials: int, concurrent: int) -> Run:
    return started({"name": "random", "max_trials": max_trials, "max_concurrent_trials": concurrent})


@pytest.mark.parametrize(
    ("section", "initial"),
    [
        ({"name": "single"}, 1),
        ({"name": "random", "max_trials": 4}, 4),
        ({"name": "random", "max_trials": 40}, 16),
        ({"name": "random", "max_trials": 4, "max_concurrent_trials": 2}, 2),
        ({"name": "random", "max_trials": 40, "max_concurrent_trials": 0}, 40),
        ({"name": "grid"}, 4),
        ({"name": "grid", "max_concurrent_trials": 3}, 3),
        ({"name": "grid", "max_concurrent_trials": 0}, 4),
    ],
)
def test_initial_trials(section: dict[str, Any], initial: int) -> None:
    assert len(started(section).trials) == initial


def test_each_exit_makes_room_for_one_trial_until_all_were_created() -> None:
    run = random_run(4, 2)
    created = [len(run.exit(run.numbered(number))) for number in (1, 2, 3)]
    assert created == [1, 1, 0]
    assert run.searcher.snapshot()["search_method_state"]["pending_trials"] == 1
    assert len(run.trials) == 4


@pytest.mark.parametrize("reason", [ExitedReason.INVALID_HP, ExitedReason.INIT_INVALID_HP])
def test_random_replaces_trials_with_invalid_hyperparameters(reason: ExitedReason) -> None:
    run = random_run(2, 2)
    run.exit_early(run.numbered(1), reason)
    assert [run.name(action) for action in run.exit(run.numbered(1))] == ["create T3"]
    assert run.exit(run.numbered(2)) == []
    assert [run.name(action) for action in run.exit(run.numbered(3))] == ["shutdown"]


@pytest.mark.parametrize("section", [{"name": "single"}, {"name": "grid"}])
def test_single_and_grid_replace_nothing(section: dict[str, Any]) -> None:
    run = started(section)
    before = len(run.trials)
    run.exit_early(run.numbered(1), ExitedReason.INVALID_HP)
    run.exit(run.numbered(1))
    assert len(run.trials) == before


def test_grid_takes_the_last_point_first() -> None:
    run = started({"name": "grid", "max_concurrent_trials": 2})
    while run.running:
        run.exit(next(iter(run.running.values())))
    assert [trial.create.hparams["x"] for trial in run.trials.values()] == [3, 2, 1, 0]


@pytest.mark.parametrize(
    "section",
    [
        {"name": "random", "max_trials": 4, "max_concurrent_trials": 2},
        {"name": "grid", "max_concurrent_trials": 2},
    ],
)
def test_progress_counts_all_trials_also_those_to_come(section: dict[str, Any]) -> None:
    run = started(section)
    searcher = run.searcher
    first, second = (trial.create.request_id for trial in run.trials.values())
    searcher.set_trial_progress(first, 0.5)
    searcher.set_trial_progress(second, 0.25)
    assert searcher.progress() == pytest.approx(0.75 / 4)
    run.exit(run.numbered(1))  # creates the third
    assert searcher.progress() == pytest.approx(1.25 / 4)


def test_shape_of_the_state() -> None:
    def state(run: Run) -> dict[str, Any]:
        method_state: dict[str, Any] = run.searcher.snapshot()["search_method_state"]
        return method_state

    assert state(random_run(4, 2)) == {"created_trials": 2, "pending_trials": 2, "search_method_type": "random"}
    assert state(started({"name": "single"})) == {
        "created_trials": 1,
        "pending_trials": 1,
        "search_method_type": "single",
    }
    assert state(started({"name": "grid", "max_concurrent_trials": 3})) == {
        "pending_trials": 3,
        "remaining_trials": [{"x": 0}],
        "search_method_type": "grid",
    }
