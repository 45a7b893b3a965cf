"""States of a trial (docs/reference/experiments.md 5.2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from libs.states.experiment import ExperimentState


class TrialState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_COMPLETED = "STOPPING_COMPLETED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    STOPPING_KILLED = "STOPPING_KILLED"
    STOPPING_ERROR = "STOPPING_ERROR"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    # Of unmanaged trials only.
    RUNNING = "RUNNING"


_S = TrialState

TERMINAL: Final = frozenset({_S.COMPLETED, _S.CANCELED, _S.ERROR})
STOPPING: Final = frozenset({_S.STOPPING_COMPLETED, _S.STOPPING_CANCELED, _S.STOPPING_KILLED, _S.STOPPING_ERROR})

# How urgently a stopping state wants the trial gone; a request for a less urgent one changes nothing.
_SEVERITY: Final = {
    _S.STOPPING_COMPLETED: 1,
    _S.STOPPING_CANCELED: 2,
    _S.STOPPING_KILLED: 3,
    _S.STOPPING_ERROR: 4,
}

END_OF_STOPPING: Final = {
    _S.STOPPING_COMPLETED: _S.COMPLETED,
    _S.STOPPING_CANCELED: _S.CANCELED,
    _S.STOPPING_KILLED: _S.CANCELED,
    _S.STOPPING_ERROR: _S.ERROR,
}

WANTED: Final = {
    ExperimentState.ACTIVE: _S.ACTIVE,
    ExperimentState.PAUSED: _S.PAUSED,
    ExperimentState.STOPPING_COMPLETED: _S.STOPPING_COMPLETED,
    ExperimentState.STOPPING_CANCELED: _S.STOPPING_CANCELED,
    ExperimentState.STOPPING_KILLED: _S.STOPPING_KILLED,
    ExperimentState.STOPPING_ERROR: _S.STOPPING_ERROR,
}
"""What an experiment that is not over asks its trials for."""


def asked_for(state: TrialState, target: TrialState) -> TrialState:
    """The state of a trial that was in ``state`` when somebody asked for ``target``.

    Terminal states are final, a stopping trial is neither paused nor activated, and stopping only gets more urgent.
    """
    if state in TERMINAL or target in TERMINAL:
        return state
    if state in STOPPING:
        return target if target in STOPPING and _SEVERITY[target] > _SEVERITY[state] else state
    return target
