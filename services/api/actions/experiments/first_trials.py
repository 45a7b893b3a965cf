"""Stores the trials that an experiment begins with.

Source: docs/reference/experiments.md 1.7 (step 15) and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.new_trials import NewTrialTask, Origin, insert_numbered_trials
from libs.db.outbox import announce
from libs.events.changes import PublicEvent, TaskChanged, TrialChanged
from libs.searchers.actions import Create
from libs.searchers.search_start import SearchStart
from libs.states.trial import TrialState

AT_A_TIME: Final = 500
"""Trials; a search may begin with very many, and in between others are served."""


async def insert_first_trials(
    connection: AsyncConnection,
    experiment: Origin,
    search: SearchStart,
    *,
    first: int,
    workspace_id: int,
    state: TrialState,
    now: datetime,
    events: Sequence[PublicEvent],
) -> int:
    """Insert what ``search`` begins with; belongs to the transaction that inserts the experiment.

    first   of as many local ids as there are trials, which were taken for them
    events  announced before those of the trials, and with them
    Returns the number of the last event in the outbox.
    """
    searcher = experiment.config["searcher"]
    number = 0
    for start in range(0, len(search.creates), AT_A_TIME):
        batch = search.creates[start : start + AT_A_TIME]
        inserted = await insert_numbered_trials(
            connection,
            experiment,
            batch,
            first=first + start,
            workspace_id=workspace_id,
            state=state,
            warm_start=searcher.get("source_checkpoint_uuid"),
            now=now,
            is_best=searcher["name"] == "single",
        )
        number = await announce(connection, *events, *_events(experiment, batch, inserted, state))
        events = ()
    return await announce(connection, *events) if events else number


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
