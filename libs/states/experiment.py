"""States of an experiment (docs/reference/experiments.md 5.1): who may go where, and which trigger takes it there."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ExperimentState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_COMPLETED = "STOPPING_COMPLETED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    STOPPING_KILLED = "STOPPING_KILLED"
    STOPPING_ERROR = "STOPPING_ERROR"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    DELETING = "DELETING"
    DELETE_FAILED = "DELETE_FAILED"
    # Of unmanaged experiments only.
    RUNNING = "RUNNING"


class Trigger(StrEnum):
    ACTIVATE = "ACTIVATE"
    PAUSE = "PAUSE"
    CANCEL = "CANCEL"
    KILL = "KILL"
    # The search is over ...
    SEARCH_COMPLETED = "SEARCH_COMPLETED"
    SEARCH_CANCELED = "SEARCH_CANCELED"
    # ... or cannot go on.
    FAIL = "FAIL"
    # The last live trial of a stopping experiment has ended.
    TRIALS_ENDED = "TRIALS_ENDED"
    DELETE = "DELETE"
    # Somebody wants one that has ended to go on.
    CONTINUE = "CONTINUE"
    DELETE_FAILED = "DELETE_FAILED"


_S = ExperimentState
_T = Trigger

TERMINAL: Final = frozenset({_S.COMPLETED, _S.CANCELED, _S.ERROR})
STOPPING: Final = frozenset({_S.STOPPING_COMPLETED, _S.STOPPING_CANCELED, _S.STOPPING_KILLED, _S.STOPPING_ERROR})
LIVE: Final = frozenset({_S.ACTIVE, _S.PAUSED}) | STOPPING
DELETABLE: Final = TERMINAL | {_S.DELETE_FAILED}

TRANSITIONS: Final[dict[tuple[ExperimentState, Trigger], ExperimentState]] = {
    (_S.PAUSED, _T.ACTIVATE): _S.ACTIVE,
    (_S.ACTIVE, _T.ACTIVATE): _S.ACTIVE,
    (_S.ACTIVE, _T.PAUSE): _S.PAUSED,
    (_S.PAUSED, _T.PAUSE): _S.PAUSED,
    (_S.ACTIVE, _T.CANCEL): _S.STOPPING_CANCELED,
    (_S.PAUSED, _T.CANCEL): _S.STOPPING_CANCELED,
    (_S.STOPPING_CANCELED, _T.CANCEL): _S.STOPPING_CANCELED,
    (_S.ACTIVE, _T.KILL): _S.STOPPING_KILLED,
    (_S.PAUSED, _T.KILL): _S.STOPPING_KILLED,
    (_S.STOPPING_CANCELED, _T.KILL): _S.STOPPING_KILLED,
    (_S.STOPPING_KILLED, _T.KILL): _S.STOPPING_KILLED,
    # The reference refuses this one, and a trial that ignores its preemption could never be got rid of.
    (_S.STOPPING_COMPLETED, _T.KILL): _S.STOPPING_KILLED,
    (_S.ACTIVE, _T.SEARCH_COMPLETED): _S.STOPPING_COMPLETED,
    (_S.PAUSED, _T.SEARCH_COMPLETED): _S.STOPPING_COMPLETED,
    (_S.ACTIVE, _T.SEARCH_CANCELED): _S.STOPPING_CANCELED,
    (_S.PAUSED, _T.SEARCH_CANCELED): _S.STOPPING_CANCELED,
    (_S.ACTIVE, _T.FAIL): _S.STOPPING_ERROR,
    (_S.PAUSED, _T.FAIL): _S.STOPPING_ERROR,
    (_S.STOPPING_COMPLETED, _T.FAIL): _S.STOPPING_ERROR,
    (_S.STOPPING_CANCELED, _T.FAIL): _S.STOPPING_ERROR,
    (_S.STOPPING_KILLED, _T.FAIL): _S.STOPPING_ERROR,
    (_S.STOPPING_COMPLETED, _T.TRIALS_ENDED): _S.COMPLETED,
    (_S.STOPPING_CANCELED, _T.TRIALS_ENDED): _S.CANCELED,
    (_S.STOPPING_KILLED, _T.TRIALS_ENDED): _S.CANCELED,
    (_S.STOPPING_ERROR, _T.TRIALS_ENDED): _S.ERROR,
    (_S.COMPLETED, _T.CONTINUE): _S.PAUSED,
    (_S.CANCELED, _T.CONTINUE): _S.PAUSED,
    (_S.ERROR, _T.CONTINUE): _S.PAUSED,
    (_S.COMPLETED, _T.DELETE): _S.DELETING,
    (_S.CANCELED, _T.DELETE): _S.DELETING,
    (_S.ERROR, _T.DELETE): _S.DELETING,
    (_S.DELETE_FAILED, _T.DELETE): _S.DELETING,
    (_S.DELETING, _T.DELETE_FAILED): _S.DELETE_FAILED,
}


def step(state: ExperimentState, trigger: Trigger) -> ExperimentState | None:
    """The state after ``trigger``, or None when it is not possible in ``state``."""
    return TRANSITIONS.get((state, trigger))
