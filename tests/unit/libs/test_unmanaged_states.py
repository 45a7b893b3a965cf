from __future__ import annotations

import pytest

from libs.states.unmanaged import state_of_trials
from tests.scenarios.unmanaged import STATES


@pytest.mark.parametrize(("states", "expected"), STATES)
def test_an_experiment_that_runs_elsewhere_is_as_its_trials_are(states: list[str], expected: str) -> None:
    assert state_of_trials(states) == expected
    assert state_of_trials(reversed(states)) == expected
