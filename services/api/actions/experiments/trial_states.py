"""Changes the states of trials with that of their experiment, in one transaction: clients look at both at once.

What runs for a trial, and so the end of it, is the scheduler's. Source: docs/reference/experiments.md 5.1.
"""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.outbox import announce
from libs.db.tables.trials import trials
from libs.events.changes import TrialChanged
from libs.states.experiment import ExperimentState
from libs.states.trial import WANTED, TrialState, asked_for


async def change_trial_states(connection: AsyncConnection, experiment_id: int, state: ExperimentState) -> None:
    """Ask the trials of a locked experiment for what it wants in ``state``; some have ended or stop more urgently."""
    wanted = WANTED.get(state)
    if wanted is None:
        return
    others = [one for one in TrialState if one != wanted and asked_for(one, wanted) == wanted]
    query = (
        select(trials.c.id, trials.c.restarts)
        .where(trials.c.experiment_id == experiment_id, trials.c.end_time.is_(None), trials.c.state.in_(others))
        .order_by(trials.c.id)
        .with_for_update(key_share=True)
    )
    following = (await connection.execute(query)).all()
    if not following:
        return
    ids = [trial.id for trial in following]
    await connection.execute(update(trials).where(any_of(trials.c.id, ids)).values(state=wanted.value))
    await announce(
        connection,
        *(
            TrialChanged(
                trial_id=trial.id,
                experiment_id=experiment_id,
                what="state",
                state=wanted.value,
                restarts=trial.restarts,
            )
            for trial in following
        ),
    )
