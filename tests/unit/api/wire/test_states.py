"""Stored states and their names on the wire."""

from __future__ import annotations

from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState
from services.api.wire.experiments.experiments import (
    ExperimentState as WireState,
)
from services.api.wire.trials.trials import TrialState as WireTrialState


def test_every_stored_state_can_be_shown() -> None:
    assert {state.value for state in ExperimentState} <= set(WireState.__members__)
    assert {state.value for state in TrialState} <= set(WireTrialState.__members__)
