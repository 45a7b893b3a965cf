"""Back-off of a trial before its next attempt when the last one ended through no fault of its own. Pure.

Such ends do not count as restarts, so nothing else would keep a launcher that refuses everything, or a node that is
lost again and again, from using up runs by the second.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from libs.states.allocation import CLUSTER_PREEMPTS, MOVED
from services.scheduler.allocations.exits import ExitKind
from services.scheduler.allocations.termination import NODE_DISABLED
from services.scheduler.transactions.rows import AllocationRow, TrialRow

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=60)
LONG_RUN: Final = timedelta(seconds=60)
"""An attempt that ran for longer shows that things work, and pauses begin anew."""


def count_end(trial: TrialRow, row: AllocationRow, *, now: datetime) -> timedelta | None:
    """Put off the next attempt if ``row`` was cut off; returns for how long.

    The pause doubles with every attempt in a row that was cut off soon.
    """
    if not was_cut_off(row):
        trial.transient_ends = 0
        return None
    trial.transient_ends = 1 if _ran_long(row) else trial.transient_ends + 1
    pause = pause_after(trial.transient_ends)
    trial.not_before = now + pause
    return pause


def pause_after(transient_ends: int) -> timedelta:
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(transient_ends - 1, 10))


def was_cut_off(row: AllocationRow) -> bool:
    """Whether the allocation ended by a fault of the system, or though neither it nor anybody else wanted it to."""
    if row.exit_kind != ExitKind.NONE:
        return row.exit_kind == ExitKind.TRANSIENT
    if row.killed_at is not None:
        reason = row.kill_reason or ""
        return reason in (NODE_DISABLED, CLUSTER_PREEMPTS) or reason.startswith(MOVED)
    return not row.stopped_early and row.preempted_at is None


def _ran_long(row: AllocationRow) -> bool:
    return row.start_time is not None and row.end_time is not None and row.end_time - row.start_time > LONG_RUN
