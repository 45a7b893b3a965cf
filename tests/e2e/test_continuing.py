"""Trials that go on where they were, in the same experiment: ``det experiment continue``.

Source: docs/reference/experiments.md 7 (the table).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = pytest.mark.slow

SEARCHES = {
    "random": ({"name": "random", "max_trials": 2}, {"type": "double", "minval": 0.01, "maxval": 0.02}),
    "grid": ({"name": "grid"}, {"type": "categorical", "vals": [0.01, 0.02]}),
}

ONCE_MORE = "[ $DET_TRIAL_RUN_ID -gt 1 ] || sleep 1000"
"""Has no end in its first run, and nothing to do in those that follow."""


def go_on(det: Client, experiment: int, *options: str) -> None:
    assert f"Continued experiment {experiment}" in det("experiment", "continue", str(experiment), *options)


def reported(look: Looking, trial: int) -> list[float]:
    return [report["metrics"]["avg_metrics"]["x"] for report in look.reports(trial)]


def test_a_trial_goes_on_from_its_checkpoint_and_what_came_after_it_is_taken_back(det: Client, look: Looking) -> None:
    experiment = submit(det, "stages.py")
    look.wait(experiment, "STATE_ERROR")
    first, begun = look.trial(experiment), look.experiment(experiment)
    assert reported(look, first["id"]) == [1]

    go_on(det, experiment)
    look.wait(experiment, "STATE_ERROR")
    assert reported(look, first["id"]) == [2, 3, 4]

    go_on(det, experiment)
    look.wait(experiment)
    last, ended = look.trial(experiment), look.experiment(experiment)
    assert reported(look, first["id"]) == [2, 3, 5]
    task = first["taskId"]
    assert (last["id"], last["taskId"], last["taskIds"]) == (first["id"], task, [task, f"{task}-1", f"{task}-2"])
    for before, after in ((first, last), (begun, ended)):
        assert after["startTime"] == before["startTime"]
        assert after["endTime"] > before["endTime"]
    assert (last["state"], last["restarts"], ended["progress"]) == ("STATE_COMPLETED", 0, 1.0)
    second = look.get(f"/tasks/{task}-1")["task"]
    assert second["startTime"] > begun["endTime"]


def test_changes_of_the_configuration_count_for_the_runs_that_follow(det: Client, look: Looking) -> None:
    experiment = submit(det, "exit 3", max_restarts=2)
    look.wait(experiment, "STATE_ERROR")
    assert look.trial(experiment)["restarts"] == 2
    go_on(det, experiment, "--config", "max_restarts=1")
    look.wait(experiment, "STATE_ERROR")
    trial = look.trial(experiment)
    assert trial["restarts"] == 1
    runs = [len(look.get(f"/tasks/{task}")["task"]["allocations"]) for task in trial["taskIds"]]
    assert runs == [3, 2]


@pytest.mark.parametrize("search", ["random", "grid"])
def test_a_search_makes_up_for_the_trial_that_was_killed(det: Client, look: Looking, search: str) -> None:
    searcher, space = SEARCHES[search]
    experiment = submit(
        det,
        ONCE_MORE,
        searcher={**searcher, "metric": "loss", "max_concurrent_trials": 2},
        hyperparameters={"lr": space},
        preemption_timeout=1,
    )
    trials = wait_until(lambda: _running(look, experiment, 2))
    det("trial", "kill", str(trials[0]["id"]))
    det("experiment", "pause", str(experiment))
    wait_until(lambda: look.state(experiment) == "STATE_PAUSED" and _left(look, experiment))
    det("experiment", "activate", str(experiment))
    look.wait(experiment)
    assert sorted(trial["state"] for trial in look.trials(experiment)) == ["STATE_CANCELED", "STATE_COMPLETED"]
    go_on(det, experiment)
    look.wait(experiment)
    after = look.trials(experiment)
    assert [trial["id"] for trial in after] == [trial["id"] for trial in trials]
    assert {trial["state"] for trial in after} == {"STATE_COMPLETED"}
    assert "has been completed" in det.run("experiment", "continue", str(experiment)).err


def test_a_single_trial_that_was_killed_completes(det: Client, look: Looking) -> None:
    experiment = submit(det, ONCE_MORE)
    [trial] = wait_until(lambda: _running(look, experiment, 1))
    det("trial", "kill", str(trial["id"]))
    look.wait(experiment, "STATE_CANCELED")
    go_on(det, experiment)
    look.wait(experiment)
    assert look.trial(experiment)["state"] == "STATE_COMPLETED"


def _running(look: Looking, experiment: int, count: int) -> list[dict[str, Any]] | None:
    trials = look.trials(experiment)
    return trials if [trial["state"] for trial in trials] == ["STATE_RUNNING"] * count else None


def _left(look: Looking, experiment: int) -> bool:
    return all(trial["state"] in {"STATE_PAUSED", "STATE_CANCELED"} for trial in look.trials(experiment))
