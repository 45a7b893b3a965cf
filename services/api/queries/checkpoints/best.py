"""The best checkpoint of a trial: the one whose step was validated best.

Source: docs/reference/experiments.md 9.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from services.api.queries.metric_values import (
    number_in,
    report_at_step,
    searcher_metric_of,
    sign_of_searcher_metric,
)
from services.api.wire.base import int64, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import CheckpointState, CheckpointWorkload


async def best_checkpoints(connection: AsyncConnection, trial_ids: Sequence[int]) -> dict[int, CheckpointWorkload]:
    """Trial id -> its best COMPLETED checkpoint; trials without a validated one are absent. Of equals, the first."""
    value = number_in(searcher_metric_of(metrics, experiments))
    signed = value * sign_of_searcher_metric(experiments)
    rows = await connection.execute(
        select(*checkpoints.c)
        .ext(distinct_on(checkpoints.c.trial_id))
        .select_from(
            checkpoints.join(experiments, experiments.c.id == checkpoints.c.experiment_id).join(
                metrics, report_at_step(metrics, checkpoints, "validation")
            )
        )
        .where(
            any_of(checkpoints.c.trial_id, trial_ids),
            any_of(metrics.c.trial_id, trial_ids),
            checkpoints.c.state == "COMPLETED",
            value.is_not(None),
        )
        .order_by(checkpoints.c.trial_id, signed.asc(), metrics.c.id, checkpoints.c.report_time)
    )
    return {row.trial_id: as_workload(row) for row in rows}


def as_workload(row: Any) -> CheckpointWorkload:
    """A row of ``checkpoints`` as one of the things a trial has done."""
    return CheckpointWorkload(
        uuid=row.uuid,
        end_time=timestamp(row.report_time),
        state=CheckpointState[row.state],
        resources={path: int64(int(size)) for path, size in row.resources.items()},
        total_batches=row.steps_completed or 0,
        metadata=struct_value(row.metadata),
    )
