"""Trials beside their series, without what may hold a value for each metric that a trial has ever reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import Text, cast, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.errors import NotFound
from services.api.queries.experiments.displayed_states import displayed
from services.api.queries.prepared import PreparedQuery, one_of_hidden
from services.api.queries.summaries import is_marked, present_totals
from services.api.queries.trials.trials import NO_TASKS, Tasks, tasks_of
from services.api.wire.base import double, int64, struct_text, struct_value, timestamp
from services.api.wire.charts.series import ComparedTrial
from services.api.wire.trials.trials import TrialState

_BY_ID: Final = PreparedQuery(
    select(
        trials.c.id,
        trials.c.experiment_id,
        trials.c.start_time,
        trials.c.end_time,
        trials.c.state,
        trials.c.restarts,
        cast(trials.c.hparams, Text).label("hparams"),
        trials.c.total_batches,
        is_marked().label("is_marked"),
        trials.c.runner_state,
        trials.c.warm_start_checkpoint_uuid,
        trials.c.checkpoint_size,
        trials.c.checkpoint_count,
        trials.c.searcher_metric_value,
        trials.c.log_retention_days,
        trials.c.metadata,
        trials.c.log_policy_matched,
        experiments.c.config["max_restarts"].label("max_restarts"),
    )
    .select_from(trials.join(experiments, experiments.c.id == trials.c.experiment_id))
    .where(one_of_hidden(trials.c.id, "trials"))
)


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
        _compared(row, tasks.get(row.id, NO_TASKS), totals.get(row.id, row.total_batches))
        for row in (rows[trial_id] for trial_id in trial_ids)
    ]


def _compared(row: Any, tasks: Tasks, total_batches: int) -> ComparedTrial:
    task_ids = list(tasks.ids)
    return ComparedTrial(
        id=row.id,
        experiment_id=row.experiment_id,
        start_time=timestamp(row.start_time),
        end_time=timestamp(row.end_time),
        state=TrialState[displayed(row.state, tasks.live)],
        restarts=min(row.restarts, row.max_restarts) if isinstance(row.max_restarts, int) else row.restarts,
        hparams=struct_text(row.hparams),
        total_batches_processed=total_batches,
        runner_state=row.runner_state,
        wall_clock_time=tasks.seconds,
        warm_start_checkpoint_uuid=row.warm_start_checkpoint_uuid or "",
        task_id=task_ids[0] if task_ids else "",
        total_checkpoint_size=int64(row.checkpoint_size),
        checkpoint_count=row.checkpoint_count,
        task_ids=task_ids,
        searcher_metric_value=UNSET if row.searcher_metric_value is None else double(row.searcher_metric_value),
        log_retention_days=UNSET if row.log_retention_days is None else row.log_retention_days,
        metadata=UNSET if row.metadata is None else struct_value(row.metadata),
        log_policy_matched=UNSET if row.log_policy_matched is None else row.log_policy_matched,
    )
