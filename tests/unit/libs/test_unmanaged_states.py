from __future__ import annotations

import pytest

from libs.states.unmanaged import state_of_trials

CASES = [
    ([], "PAUSED"),
    (["PAUSED"], "PAUSED"),
    (["PAUSED", "ERROR"], "ERROR"),
    (["ERROR", "COMPLETED"], "COMPLETED"),
    (["COMPLETED", "RUNNING", "ERROR"], "RUNNING"),
    # Both of them lost; and one lost among others.
    (["ERROR", "ERROR"], "ERROR"),
    (["COMPLETED", "ERROR", "ERROR"], "COMPLETED"),
    # An import may bring states that no trial reports.
    (["CANCELED"], "PAUSED"),
]


@pytest.mark.parametrize(("states", "expected"), CASES)
def test_an_experiment_that_runs_elsewhere_is_as_its_trials_are(states: list[str], expected: str) -> None:
    assert state_of_trials(states) == expected
    assert state_of_trials(reversed(states)) == expected
