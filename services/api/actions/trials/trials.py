"""Requests of users about a single trial: kill it, keep its logs.

Source: docs/reference/experiments.md 6 (kill trial, retain logs).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.outbox import announce
from libs.db.tables.trials import trials
from libs.errors import NotFound
from libs.events.changes import TrialChanged
from libs.states.trial import TERMINAL, TrialState, asked_for
from services.api.actions.experiment_lock import check_live, lock_experiment
from services.api.actions.experiments.edit import check_days


async def kill_trial(connection: AsyncConnection, trial_id: int) -> int:
    """End it now, and return its experiment; one that has ended stays as it is.

    Raises NotFound, also when its experiment has ended.
    """
    experiment_id = await _experiment_of(connection, trial_id)
    check_live(await lock_experiment(connection, experiment_id))
    row = await _lock_trial(connection, trial_id)
    state = asked_for(TrialState(row.state), TrialState.STOPPING_KILLED)
    if state in TERMINAL:
        return experiment_id
    await connection.execute(update(trials).where(trials.c.id == trial_id).values(state=state.value))
    await announce(
        connection,
        TrialChanged(
            trial_id=trial_id, experiment_id=experiment_id, what="state", state=state.value, restarts=row.restarts
        ),
    )
    return experiment_id


async def retain_trial_logs(connection: AsyncConnection, trial_id: int, num_days: int) -> None:
    """How long its logs are kept after its end, in days. Raises NotFound."""
    check_days(num_days)
    await _lock_trial(connection, trial_id)
    await connection.execute(update(trials).where(trials.c.id == trial_id).values(log_retention_days=num_days))


async def _experiment_of(connection: AsyncConnection, trial_id: int) -> int:
    found = await connection.execute(select(trials.c.experiment_id).where(trials.c.id == trial_id))
    experiment_id: int | None = found.scalar_one_or_none()
    if experiment_id is None:
        raise NotFound("trial", trial_id)
    return experiment_id


async def _lock_trial(connection: AsyncConnection, trial_id: int) -> Row[Any, Any]:
    """Lock its row, and read what changes of it depend on: the whole row may have megabytes of summaries."""
    state = select(trials.c.state, trials.c.restarts).where(trials.c.id == trial_id)
    row = (await connection.execute(state.with_for_update())).one_or_none()
    if row is None:
        raise NotFound("trial", trial_id)
    return row
