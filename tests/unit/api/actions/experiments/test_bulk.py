"""States from which bulk actions may start."""

from __future__ import annotations

from libs.states.experiment import ExperimentState
from services.api.actions.experiments.bulk import DEFAULT_STATES


def test_bulk_actions_never_start_from_a_state_that_must_not_be_left() -> None:
    assert all(ExperimentState.DELETING not in states for states in DEFAULT_STATES.values())
