"""The best checkpoint of a trial: the one whose step was validated best.

Source: docs/reference/experiments.md 9.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from services.api.queries.metric_values import (
    number_in,
    report_at_step,
    searcher_metric_of,
    sign_of_searcher_metric,
)
from services.api.queries.prepared import PreparedQuery, hidden, one_of_hidden
from services.api.wire.base import Int64, int64, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import CheckpointState, CheckpointWorkload

_value = number_in(searcher_metric_of(metrics, experiments))
_best = (
    select(*checkpoints.c)
    .ext(distinct_on(checkpoints.c.trial_id))
    .select_from(
        checkpoints.join(experiments, experiments.c.id == checkpoints.c.experiment_id).join(
            metrics, report_at_step(metrics, checkpoints, "validation")
        )
    )
    .where(checkpoints.c.state == "COMPLETED", _value.is_not(None))
    .order_by(
        checkpoints.c.trial_id,
        (_value * sign_of_searcher_metric(experiments)).asc(),
        checkpoints.c.report_time.desc(),
        metrics.c.id.desc(),
    )
)
_OF_ONE: Final = PreparedQuery(
    _best.where(checkpoints.c.trial_id == hidden("trial", checkpoints.c.trial_id)), constants_in_text=True
)
_OF_SEVERAL: Final = PreparedQuery(
    _best.where(one_of_hidden(checkpoints.c.trial_id, "trials"), one_of_hidden(metrics.c.trial_id, "trials")),
    constants_in_text=True,
)


async def best_checkpoints(
    connection: AsyncConnection | DriverConnection, trial_ids: Sequence[int]
) -> dict[int, CheckpointWorkload]:
    """Trial id -> its best COMPLETED checkpoint; trials without a validated one are absent. Of equals, the newest."""
    if len(trial_ids) == 1:
        rows = await _OF_ONE.rows(connection, trial=trial_ids[0])
    else:
        rows = await _OF_SEVERAL.rows(connection, trials=trial_ids)
    return {row.trial_id: as_workload(row) for row in rows}


def sizes_of(resources: Any) -> dict[str, Int64]:
    """Sizes by path as clients read them; what is no number, as some imports have it, is left out."""
    found = resources if isinstance(resources, dict) else {}
    return {path: int64(int(size)) for path, size in found.items() if isinstance(size, int | float)}


def as_workload(row: Any) -> CheckpointWorkload:
    """A row of ``checkpoints`` as one of the things a trial has done."""
    return CheckpointWorkload(
        uuid=row.uuid,
        end_time=timestamp(row.report_time),
        state=CheckpointState[row.state],
        resources=sizes_of(row.resources),
        total_batches=row.steps_completed or 0,
        metadata=struct_value(row.metadata),
    )
