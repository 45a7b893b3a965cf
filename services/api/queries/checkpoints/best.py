"""The best checkpoint of a trial: the one whose step was validated best.

Source: docs/reference/experiments.md 9.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, literal_column, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from services.api.queries.metric_values import number_in, report_at_step, sign_of_searcher_metric
from services.api.queries.prepared import PreparedQuery, hidden, one_of_hidden
from services.api.wire.base import Int64, int64, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import CheckpointState, CheckpointWorkload

_SHOWN: Final = ("uuid", "report_time", "state", "resources", "metadata", "steps_completed")
_found: Final = checkpoints.alias("found")
_reports: Final = metrics.alias("reports")


def _best(of_trials: Callable[[ColumnElement[int]], ColumnElement[bool]]) -> Select[Any]:
    """Of each trial, its checkpoints are looked up, and of each of these the report at its step."""
    # A configuration is read once for a trial: it may be long, and compressed.
    asked = (
        select(
            trials.c.id,
            experiments.c.config["searcher"]["metric"].astext.label("metric"),
            sign_of_searcher_metric(experiments).label("sign"),
        )
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .where(of_trials(trials.c.id))
        .offset(literal_column("0"))
        .subquery("asked")
    )
    of_trial = [_found.c.trial_id == asked.c.id, _reports.c.trial_id == asked.c.id]
    value = number_in(_reports.c.metrics["validation_metrics"].op("->")(asked.c.metric))
    best = (
        select(*(_found.c[name] for name in _SHOWN))
        .join(_reports, report_at_step(_reports, _found, "validation"))
        .where(*of_trial, _found.c.state == "COMPLETED", value.is_not(None))
        .order_by((value * asked.c.sign).asc(), _found.c.report_time.desc(), _reports.c.id.desc())
        .limit(literal_column("1"))
        .lateral("best")
    )
    return select(asked.c.id.label("trial_id"), *best.c).join_from(asked, best, true())


_OF_ONE: Final = PreparedQuery(_best(lambda ident: ident == hidden("trial", ident)), constants_in_text=True)
_OF_SEVERAL: Final = PreparedQuery(_best(lambda ident: one_of_hidden(ident, "trials")), constants_in_text=True)


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
