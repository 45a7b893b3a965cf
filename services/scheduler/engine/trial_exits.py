"""Reacting to allocations that have ended: gathering the facts, and waiting for logs where they decide."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import func, select

from libs.db.engine import Connection
from libs.db.tables.logs import log_streams
from libs.db.tables.tasks import tasks
from libs.states.trial import TrialState
from services.scheduler.engine.exits import ExitKind
from services.scheduler.engine.leaving import is_over, note
from services.scheduler.engine.reactions import NO_RETRY, TrialExit, may_depend_on_logs, react
from services.scheduler.engine.rows import AllocationRow, TrialRow
from services.scheduler.engine.run import Run
from services.scheduler.engine.trial_moves import apply_reaction

LOG_WAIT: Final = timedelta(seconds=30)
"""Longest wait for the log of a failed attempt (spec/logs.md 13.10)."""
_LOOK_AGAIN_S: Final = 0.5


async def settle_exits(run: Run) -> None:
    """React to every allocation of a live trial that has ended, unless its log is still to come."""
    for trial in run.live:
        row = run.open_allocation(trial)
        if row is None or not is_over(row):
            continue
        if await _log_is_to_come(run, trial, row):
            run.look_again(in_s=_LOOK_AGAIN_S)
            continue
        matches = await _matches(run.connection, row.task_id) if row.exit_kind else []
        reaction = react(_exit(run, trial, row, retries_canceled=bool(matches)))
        if reaction.error == NO_RETRY:
            note(row, "trial failed and matched logs to a don't retry policy", now=run.now, out=run.out, level="ERROR")
            for match in matches:
                text = f'(log "{match.get("log", "")}" matched regex "{match.get("regex", "")}")'
                note(row, text, now=run.now, out=run.out, level="ERROR")
        apply_reaction(run, trial, reaction)


def _exit(run: Run, trial: TrialRow, row: AllocationRow, *, retries_canceled: bool = False) -> TrialExit:
    return TrialExit(
        state=TrialState(trial.state),
        kind=ExitKind(row.exit_kind),
        stopped_early=row.stopped_early,
        stopped_by_searcher=trial.stopped_by_searcher,
        early_exit=trial.early_exit_reason is not None,
        retries_canceled=retries_canceled,
        restarts=trial.restarts,
        max_restarts=int(run.experiment.config["max_restarts"]),
    )


async def _log_is_to_come(run: Run, trial: TrialRow, row: AllocationRow) -> bool:
    """Whether a log policy could still decide about the trial, and lines of this attempt are missing."""
    if not may_depend_on_logs(_exit(run, trial, row)) or not _has_policies(run.experiment.config):
        return False
    if row.end_time is None or run.now >= row.end_time + LOG_WAIT:
        return False
    streams = select(func.count(), func.count(log_streams.c.sealed_at)).where(
        log_streams.c.task_id == row.task_id,
        log_streams.c.allocation_id == row.allocation_id,
        log_streams.c.contiguous,
    )
    all_streams, sealed = (await run.connection.execute(streams)).one()
    return bool(all_streams == 0 or sealed < all_streams)


def _has_policies(config: dict[str, object]) -> bool:
    """Whether some policy does more than put a label on the trial."""
    policies = config.get("log_policies") or []
    return isinstance(policies, list) and any(policy.get("action") and policy.get("pattern") for policy in policies)


async def _matches(connection: Connection, task_id: str) -> list[dict[str, str]]:
    found = await connection.execute(select(tasks.c.cancel_retries).where(tasks.c.task_id == task_id))
    return list(found.scalar_one())
