"""State of an experiment that others run: that of its trials, as they report it (docs/reference/experiments.md 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState

_STANDING: Final[Mapping[TrialState, int]] = {
    TrialState.PAUSED: 10,
    TrialState.ERROR: 20,
    TrialState.COMPLETED: 30,
    TrialState.RUNNING: 40,
}
"""State that a trial may report -> how much it counts; the one that counts most is that of the experiment."""
REPORTABLE: Final = frozenset(_STANDING)


def state_of_trials(states: Iterable[str]) -> ExperimentState:
    """The state of an experiment with trials in these states; without any, it has yet to begin."""
    reported = [TrialState(state) for state in states if state in REPORTABLE]
    return ExperimentState(max(reported, key=_STANDING.__getitem__, default=TrialState.PAUSED))
