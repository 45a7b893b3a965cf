"""Trials beside their series, without what may hold a value for each metric that a trial has ever reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.trials import trials
from libs.errors import NotFound
from services.api.queries.prepared import PreparedQuery, one_of_hidden
from services.api.queries.summaries import present_totals
from services.api.queries.trials.trials import NO_TASKS, select_trials, shown_fields, tasks_of
from services.api.wire.charts.series import ComparedTrial

_BY_ID: Final = PreparedQuery(select_trials().where(one_of_hidden(trials.c.id, "trials")))


async def load_compared_trials(
    connection: AsyncConnection, trial_ids: Sequence[int], *, now: datetime
) -> list[ComparedTrial]:
    """In the order of ``trial_ids``. Raises NotFound for the first that there is not.

    now  up to when allocations that still run count for the wall clock time
    """
    rows = {row.id: row for row in await _BY_ID.rows(connection, trials=trial_ids)}
    for trial_id in trial_ids:
        if trial_id not in rows:
            raise NotFound("trial", trial_id)
    tasks = await tasks_of(connection, trial_ids, now)
    totals = await present_totals(connection, [row.id for row in rows.values() if row.is_marked])
    return [
        ComparedTrial(**shown_fields(row, tasks.get(row.id, NO_TASKS), totals.get(row.id, row.total_batches)))
        for row in (rows[trial_id] for trial_id in trial_ids)
    ]
