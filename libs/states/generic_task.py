"""States of a generic task (docs/reference/tasks-and-cli.md 6): who may go where, and which trigger takes it there.

What users ask for changes the state at once; what they asked for is done when the allocation has ended. Until then the
state is a STOPPING one, and whoever ends the allocation looks at it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class GenericTaskState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    STOPPING_PAUSED = "STOPPING_PAUSED"
    STOPPING_CANCELED = "STOPPING_CANCELED"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"


class TaskTrigger(StrEnum):
    PAUSE = "PAUSE"
    UNPAUSE = "UNPAUSE"
    KILL = "KILL"
    # Its allocation ended: by itself, with success ...
    EXITED = "EXITED"
    # ... with a failure ...
    FAILED = "FAILED"
    # ... because it was to make room, for a pause or for others; or there is none.
    LEFT = "LEFT"
    # ... because somebody wanted it gone for good, who did not speak of the task.
    KILLED = "KILLED"


_S = GenericTaskState
_T = TaskTrigger

TERMINAL: Final = frozenset({_S.COMPLETED, _S.CANCELED, _S.ERROR})
STOPPING: Final = frozenset({_S.STOPPING_PAUSED, _S.STOPPING_CANCELED})
AT_REST: Final = TERMINAL | {_S.PAUSED}
"""Nothing of it runs or will, as long as nobody asks for it."""

TRANSITIONS: Final[dict[tuple[GenericTaskState, TaskTrigger], GenericTaskState]] = {
    (_S.ACTIVE, _T.PAUSE): _S.STOPPING_PAUSED,
    (_S.PAUSED, _T.UNPAUSE): _S.ACTIVE,
    (_S.STOPPING_PAUSED, _T.UNPAUSE): _S.ACTIVE,
    (_S.ACTIVE, _T.KILL): _S.STOPPING_CANCELED,
    (_S.PAUSED, _T.KILL): _S.STOPPING_CANCELED,
    (_S.STOPPING_PAUSED, _T.KILL): _S.STOPPING_CANCELED,
    (_S.STOPPING_CANCELED, _T.KILL): _S.STOPPING_CANCELED,
    # Nothing of it is left to end, but what is below it may still run.
    (_S.ERROR, _T.KILL): _S.ERROR,
    (_S.ACTIVE, _T.EXITED): _S.COMPLETED,
    (_S.ACTIVE, _T.FAILED): _S.ERROR,
    # Preempted: it gets another allocation when there is room again.
    (_S.ACTIVE, _T.LEFT): _S.ACTIVE,
    (_S.ACTIVE, _T.KILLED): _S.CANCELED,
    # It was done before anybody could ask it to leave: to run again would do everything twice.
    (_S.STOPPING_PAUSED, _T.EXITED): _S.COMPLETED,
    (_S.STOPPING_PAUSED, _T.FAILED): _S.ERROR,
    (_S.STOPPING_PAUSED, _T.LEFT): _S.PAUSED,
    (_S.STOPPING_PAUSED, _T.KILLED): _S.PAUSED,
    (_S.STOPPING_CANCELED, _T.EXITED): _S.CANCELED,
    (_S.STOPPING_CANCELED, _T.FAILED): _S.ERROR,
    (_S.STOPPING_CANCELED, _T.LEFT): _S.CANCELED,
    (_S.STOPPING_CANCELED, _T.KILLED): _S.CANCELED,
}


def step(state: GenericTaskState, trigger: TaskTrigger) -> GenericTaskState | None:
    """The state after ``trigger``, or None when it is not possible in ``state``."""
    return TRANSITIONS.get((state, trigger))
