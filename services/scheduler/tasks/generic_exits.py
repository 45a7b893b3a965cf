"""What the end of an allocation means to the generic task that it ran. Pure.

Source: docs/reference/harness-protocol.md 17.3; docs/reference/tasks-and-cli.md 6.
"""

from __future__ import annotations

from typing import Final

from libs.maintenance.windows import UNDER_MAINTENANCE
from libs.states.allocation import CLUSTER_PREEMPTS
from libs.states.generic_task import TaskTrigger
from services.scheduler.allocations.exits import ExitKind, was_taken_back
from services.scheduler.allocations.termination import NODE_DISABLED
from services.scheduler.transactions.rows import AllocationRow

PAUSED: Final = "user requested pause"
KILLED: Final = "user requested kill"

_MAKES_ROOM: Final = frozenset({CLUSTER_PREEMPTS, NODE_DISABLED})
"""Reasons of kills that a task survives, if it is one that may be preempted."""


def trigger_of(row: AllocationRow) -> TaskTrigger:
    """The trigger for the task, from the record of an allocation that is over."""
    if row.exit_kind == ExitKind.TRANSIENT and was_taken_back(row):
        return TaskTrigger.LEFT  # it never ran as a whole
    if row.exit_kind != ExitKind.NONE:
        return TaskTrigger.FAILED
    if row.stopped_early and not row.preempt_acked:
        return TaskTrigger.EXITED
    if row.kill_reason == PAUSED or row.preempted_at is not None:
        return TaskTrigger.LEFT
    if row.preemptible and (row.kill_reason in _MAKES_ROOM or UNDER_MAINTENANCE in (row.kill_reason or "")):
        return TaskTrigger.LEFT
    return TaskTrigger.KILLED
