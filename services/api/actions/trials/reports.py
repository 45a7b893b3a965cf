"""Reports of training code about its trial besides metrics: its progress, its activity, and that it gives up.

Whoever writes for a search locks the experiment first, then the trial. Source: docs/reference/experiments.md 8, 5.2
(early exit), 13.1; docs/reference/harness-protocol.md 12.4.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.outbox import announce
from libs.db.tables.experiments import experiments, searcher_events
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound
from libs.events.changes import ExperimentChanged, TrialChanged
from libs.states import experiment as experiment_states
from libs.states import trial as trial_states

EARLY_EXIT_GRACE: Final = timedelta(seconds=10)
"""A trial that has given up and still runs after this is killed."""

log = structlog.get_logger(__name__)


async def lock_experiment_of(connection: AsyncConnection, trial_id: int) -> Row[Any, Any, Any]:
    """id, state and unmanaged of the experiment of a trial, locked. Raises NotFound for an unknown trial."""
    row = (
        await connection.execute(
            select(experiments.c.id, experiments.c.state, experiments.c.unmanaged)
            .join(trials, trials.c.experiment_id == experiments.c.id)
            .where(trials.c.id == trial_id)
            .with_for_update(of=experiments, key_share=True)
        )
    ).one_or_none()
    if row is None:
        raise NotFound("trial", trial_id)
    return row


def is_searching(experiment: Row[Any, Any, Any]) -> bool:
    """Whether a search hears what the trials of the experiment report."""
    return not experiment.unmanaged and experiment.state in experiment_states.LIVE


async def report_progress(connection: AsyncConnection, trial_id: int, progress: float) -> None:
    """A trial has done this fraction (0 to 1) of its work.

    The search makes the progress of the experiment of it; without one it is that of the experiment. Raises NotFound;
    and InvalidRequest for other values, unless a search would have dropped them.
    """
    value = 0.0 if math.isnan(progress) else progress
    experiment = await lock_experiment_of(connection, trial_id)
    if is_searching(experiment):
        if 0 <= value <= 1:
            await _tell_progress(connection, experiment, trial_id, value)
        else:
            log.warning("progress.dropped", trial=trial_id, progress=progress)
        return
    if not 0 <= value <= 1:
        raise InvalidRequest(f"invalid progress value: {progress} should be between 0 and 1")
    if experiment.state == experiment_states.ExperimentState.COMPLETED and not experiment.unmanaged:
        return  # is 1, and stays so
    await connection.execute(update(experiments).where(experiments.c.id == experiment.id).values(progress=value))
    await announce(
        connection,
        ExperimentChanged(experiment_id=experiment.id, what="progress", state=experiment.state, progress=value),
    )


async def _tell_progress(
    connection: AsyncConnection, experiment: Row[Any, Any, Any], trial_id: int, value: float
) -> None:
    unheard = (
        update(searcher_events)
        .where(
            searcher_events.c.experiment_id == experiment.id,
            searcher_events.c.trial_id == trial_id,
            searcher_events.c.kind == "progress",
        )
        .values(payload={"progress": value})
    )
    # Only the newest counts, so one that the search has not heard yet is replaced; it was told of that one.
    if (await connection.execute(unheard)).rowcount == 0:
        await tell_search(connection, experiment, trial_id, "progress", {"progress": value})


async def report_early_exit(connection: AsyncConnection, trial_id: int, reason: str, now: datetime) -> None:
    """The training code refuses its hyperparameters and is about to exit; said twice, the first time counts.

    reason  INVALID_HP or INIT_INVALID_HP
    Raises NotFound, also when no live search has started the trial.
    """
    experiment = await lock_experiment_of(connection, trial_id)
    if not is_searching(experiment):
        raise NotFound("experiment", experiment.id)
    trial = (await connection.execute(select(trials).where(trials.c.id == trial_id).with_for_update())).one()
    if trial.early_exit_reason is not None or trial.state in trial_states.TERMINAL:
        return
    await connection.execute(
        update(trials)
        .where(trials.c.id == trial_id)
        .values(early_exit_reason=reason, early_exit_deadline=now + EARLY_EXIT_GRACE)
    )
    await tell_search(connection, experiment, trial_id, "early_exit", {"reason": reason})
    await announce(
        connection,
        TrialChanged(trial_id=trial_id, experiment_id=experiment.id, what="state", state=trial.state),
    )


async def tell_search(
    connection: AsyncConnection, experiment: Row[Any, Any, Any], trial_id: int, kind: str, payload: dict[str, Any]
) -> None:
    """Leave an event for the search of a locked experiment."""
    await connection.execute(
        insert(searcher_events).values(experiment_id=experiment.id, trial_id=trial_id, kind=kind, payload=payload)
    )
    await announce(connection, ExperimentChanged(experiment_id=experiment.id, what="searcher", state=experiment.state))


async def set_runner_state(connection: AsyncConnection, trial_id: int, state: str) -> None:
    """What the training code is at, in its own words. Raises NotFound."""
    changed = await connection.execute(update(trials).where(trials.c.id == trial_id).values(runner_state=state))
    if changed.rowcount == 0:
        raise NotFound("trial", trial_id)
