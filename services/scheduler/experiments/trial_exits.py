"""Processes the exits of allocations of trials: gathers the facts, and waits for logs where they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import func, or_, select

from libs.capture.lines import STREAMS_PER_POD
from libs.config.defaults import EXPERIMENT
from libs.config.stored import count_in
from libs.db.engine import Connection
from libs.db.tables.logs import log_streams
from libs.db.tables.tasks import tasks
from libs.states.trial import TrialState
from services.scheduler.allocations.exits import ExitKind
from services.scheduler.allocations.termination import is_over
from services.scheduler.allocations.time_limits import has_used_up
from services.scheduler.experiments.exit_explanation import explain, explanation_is_to_come
from services.scheduler.experiments.trial_moves import apply_reaction
from services.scheduler.experiments.trial_reactions import NO_RETRY, TrialExit, may_depend_on_logs, react
from services.scheduler.transactions.locked_experiment import LockedExperiment
from services.scheduler.transactions.rows import AllocationRow, TrialRow

LOG_WAIT: Final = timedelta(seconds=30)
"""Longest wait for a log that decides, where the log intake can be reached (docs/reference/logs.md 13.10)."""
_REQUEUE_AFTER_S: Final = (0.05, 0.5)


async def process_exits(
    locked: LockedExperiment, *, log_wait: timedelta, outage_wait: Callable[[str], timedelta]
) -> None:
    """React to every allocation of a live trial that has ended, unless its log, or what explains that, is to come.

    outage_wait  longest wait for a log that decides, by pool: tasks deliver their log for as long in an outage
    log_wait  longest wait for a log that decides nothing. Whoever waits for the end of a trial reads its log next, and
              expects all of it there; and a trial that starts again should not overtake its own last words.
    """
    for trial in locked.live:
        row = locked.open_allocation(trial)
        if row is None or not is_over(row):
            continue
        if row.explained_at is None:
            longest = log_wait, max(LOG_WAIT, outage_wait(row.pool))
            if await _log_is_to_come(locked, trial, row, *longest):
                locked.requeue(after_s=_pause_s(locked, row.end_time))
                continue
            await _decide(locked, trial, row)
        if await explanation_is_to_come(locked, row, longest=log_wait):
            locked.requeue(after_s=_pause_s(locked, row.explained_at))
            continue
        apply_reaction(locked, trial, react(_exit(locked, trial, row)))


async def _decide(locked: LockedExperiment, trial: TrialRow, row: AllocationRow) -> None:
    """Read what the log says about retries, once: what comes afterwards is too late for this attempt."""
    matches = await _matches(locked.connection, row.task_id) if row.exit_kind else []
    reaction = react(_exit(locked, trial, row, retries_canceled=bool(matches)))
    explain(locked, row, canceling=matches if reaction.error == NO_RETRY else ())


def _exit(
    locked: LockedExperiment, trial: TrialRow, row: AllocationRow, *, retries_canceled: bool | None = None
) -> TrialExit:
    return TrialExit(
        state=TrialState(trial.state),
        kind=ExitKind(row.exit_kind),
        stopped_early=row.stopped_early,
        stopped_by_searcher=trial.stopped_by_searcher,
        early_exit=trial.early_exit_reason is not None,
        retries_canceled=row.retries_canceled if retries_canceled is None else retries_canceled,
        time_is_up=has_used_up(row),
        restarts=trial.restarts,
        max_restarts=_max_restarts(locked.experiment.config),
    )


def _max_restarts(config: Mapping[str, Any]) -> int:
    given = count_in(config, "max_restarts")
    return int(EXPERIMENT["max_restarts"]) if given is None else given


async def _log_is_to_come(
    locked: LockedExperiment, trial: TrialRow, row: AllocationRow, log_wait: timedelta, deciding_wait: timedelta
) -> bool:
    """Whether lines of this attempt may still come, and the wait for them is not over."""
    decides = may_depend_on_logs(_exit(locked, trial, row)) and _has_policies(locked.experiment.config)
    longest = deciding_wait if decides else log_wait
    if row.end_time is None or locked.now >= row.end_time + longest:
        return False
    if row.killed_at is not None and not decides:
        return False  # a capture that was killed with its pod cannot say that it has ended
    ended_pods = sum(pod.exit_code is not None for pod in row.pods_seen)
    # What has been given up before the end of a stream is lost, and not waited for.
    has_ended = or_(log_streams.c.sealed_at.is_not(None), log_streams.c.next_seq >= log_streams.c.end_seq)
    over = select(func.count()).where(
        has_ended,
        log_streams.c.task_id == row.task_id,
        log_streams.c.allocation_id == row.allocation_id,
        log_streams.c.contiguous,
    )
    return (await locked.connection.execute(over)).scalar_one() < ended_pods * STREAMS_PER_POD


def _pause_s(locked: LockedExperiment, since: datetime | None) -> float:
    """Usually the log is complete in a moment; if it is not, it may take long."""
    shortest, longest = _REQUEUE_AFTER_S
    waited_s = (locked.now - since).total_seconds() if since else 0.0
    return min(max(waited_s / 2, shortest), longest)


def _has_policies(config: dict[str, object]) -> bool:
    """Whether some policy does more than put a label on the trial."""
    policies = config.get("log_policies") or []
    return isinstance(policies, list) and any(
        policy.get("action") and policy.get("pattern") for policy in policies if isinstance(policy, dict)
    )


async def _matches(connection: Connection, task_id: str) -> list[dict[str, str]]:
    found = await connection.execute(select(tasks.c.cancel_retries).where(tasks.c.task_id == task_id))
    return list(found.scalar_one())
