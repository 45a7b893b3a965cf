"""Stores the trials that an experiment begins with, and the state of its search, from which the scheduler continues.

Source: docs/reference/experiments.md 1.7 (step 15) and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.new_trials import NewTrialTask, Origin, insert_trials
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments, searcher_snapshots
from libs.events.changes import TaskChanged, TrialChanged
from libs.searchers.actions import Create
from libs.searchers.search_start import SearchStart
from libs.states.trial import TrialState

AT_A_TIME: Final = 500
"""Trials; a search may begin with very many, and in between others are served."""


async def insert_first_trials(
    connection: AsyncConnection, experiment: Origin, search: SearchStart, *, state: TrialState, now: datetime
) -> None:
    """Insert what ``search`` begins with; belongs to the transaction that inserts the experiment."""
    searcher = experiment.config["searcher"]
    for start in range(0, len(search.creates), AT_A_TIME):
        batch = search.creates[start : start + AT_A_TIME]
        inserted = await insert_trials(
            connection,
            experiment,
            batch,
            state=state,
            warm_start=searcher.get("source_checkpoint_uuid"),
            now=now,
        )
        await announce(connection, *_events(experiment, batch, inserted, state))
        if searcher["name"] == "single":
            best = update(experiments).where(experiments.c.id == experiment.id)
            await connection.execute(best.values(best_trial_id=inserted[0].trial_id))
    await connection.execute(insert(searcher_snapshots).values(experiment_id=experiment.id, snapshot=search.snapshot))


def _events(
    experiment: Origin, creates: Sequence[Create], inserted: Sequence[NewTrialTask], state: TrialState
) -> Iterator[TaskChanged | TrialChanged]:
    for create, trial in zip(creates, inserted, strict=True):
        yield TaskChanged(task_id=trial.task_id, task_type="TRIAL", what="created")
        yield TrialChanged(
            trial_id=trial.trial_id,
            experiment_id=experiment.id,
            what="created",
            state=state.value,
            task_id=trial.task_id,
            hparams=create.hparams,
        )
