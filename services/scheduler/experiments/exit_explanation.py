"""Explains the end of an attempt in its log before the trial shows what becomes of it.

Lines are stored by another service than states, so a line that is written together with a state can be read later than
it. Here the last lines come first: they, and the end of their stream, are committed with the decision that they
explain, and the trial moves in a later transaction, when the logs service has stored that end. Whoever reads that a
trial has failed, or runs again, finds why in its log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import select

from libs.db.tables.logs import log_streams
from libs.loglines.batches import service_stream
from services.scheduler.transactions.allocation_messages import note
from services.scheduler.transactions.locked_experiment import LockedExperiment
from services.scheduler.transactions.rows import AllocationRow

WAIT_OF_KILLED: Final = timedelta(seconds=5)
"""Longest wait for the lines about what was killed and had not failed: whoever killed it knows why it is over."""


def explain(locked: LockedExperiment, row: AllocationRow, *, canceling: Sequence[Mapping[str, str]]) -> None:
    """Write the last lines about the attempt, once.

    canceling  matches of log policies because of which it is not tried again
    """
    row.explained_at = locked.now
    row.retries_canceled = bool(canceling)
    if canceling:
        _error(locked, row, "trial failed and matched logs to a don't retry policy")
    for match in canceling:
        _error(locked, row, f'(log "{match.get("log", "")}" matched regex "{match.get("regex", "")}")')
    locked.out.no_more_lines(task=row.task_id, allocation=row.allocation_id)


async def explanation_is_to_come(locked: LockedExperiment, row: AllocationRow, *, longest: timedelta) -> bool:
    """Whether the lines that explain how the attempt ended are not stored yet, and the wait for them is not over.

    What has done its work explains itself, and so does what never started.
    """
    if row.assigned_at is None or not (row.exit_kind or row.killed_at):
        return False
    wait = longest if row.exit_kind else min(longest, WAIT_OF_KILLED)
    if row.explained_at is None or locked.now >= row.explained_at + wait:
        return False
    # The stream of the services is in order: with its end, everything before that is stored.
    its_stream = log_streams.c.stream_key == service_stream(row.allocation_id)
    end = select(log_streams.c.sealed_at).where(its_stream)
    return (await locked.connection.execute(end)).scalar_one_or_none() is None


def _error(locked: LockedExperiment, row: AllocationRow, text: str) -> None:
    note(row, text, now=locked.now, out=locked.out, level="ERROR")
