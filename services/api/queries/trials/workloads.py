"""The workloads of a trial: its reports and checkpoints, step by step, in one list
(docs/reference/experiments.md 9.5)."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, cast, func, literal, null, select, union_all
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.errors import NotFound
from services.api.metrics.groups import AVG_METRICS, BATCH_METRICS, TRAINING, VALIDATION, VALIDATION_METRICS
from services.api.queries.checkpoints.best import sizes_of
from services.api.queries.metric_values import number_in
from services.api.queries.pagination import ALL, sql_page
from services.api.wire.base import Pagination, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import CheckpointState, CheckpointWorkload, Metrics, MetricsWorkload
from services.api.wire.ordering import OrderBy
from services.api.wire.trials.metrics import GetWorkloadsQuery, MetricType, Workload, WorkloadFilter

_BY_STEP: Final = frozenset({"", "batches"})
_CHECKPOINT: Final = "checkpoint"


async def list_workloads(
    connection: AsyncConnection, trial_id: int, query: GetWorkloadsQuery
) -> tuple[list[Workload], Pagination]:
    """A page of the workloads of a trial. Raises NotFound, InvalidRequest for a bad page.

    Training reports are shown without a filter only, checkpoints unless validations alone are wanted, and validations
    always.
    """
    if await connection.scalar(select(trials.c.id).where(trials.c.id == trial_id)) is None:
        raise NotFound("trial", trial_id)
    parts = [_reports(trial_id, VALIDATION, VALIDATION_METRICS, query)]
    if query.filter is WorkloadFilter.UNSPECIFIED:
        parts.append(_reports(trial_id, TRAINING, AVG_METRICS, query))
    if query.filter is not WorkloadFilter.VALIDATION:
        parts.append(_checkpoints(trial_id, query))
    work = union_all(*parts).subquery("work")
    total = await connection.scalar(select(func.count()).select_from(work)) or 0
    page = sql_page(total, offset=query.offset, limit=query.limit or ALL)
    page.pagination.limit = query.limit
    if page.limit == 0:
        return [], page.pagination
    descending = query.order_by is OrderBy.DESC
    keys = [work.c.sort_value, work.c.total_batches, work.c.end_time, work.c.ident]
    ordered = select(work).order_by(*((key.desc() if descending else key.asc()).nulls_last() for key in keys))
    rows = await connection.execute(ordered.offset(page.start).limit(page.limit))
    return [_workload(row) for row in rows], page.pagination


def _sort_group(query: GetWorkloadsQuery) -> str:
    if query.group:
        return query.group
    return TRAINING if query.metric_type is MetricType.TRAINING else VALIDATION


def _reports(trial_id: int, group: str, key: str, query: GetWorkloadsQuery) -> Select[Any]:
    by_metric = query.sort_key not in _BY_STEP and group == _sort_group(query)
    value: ColumnElement[Any] = number_in(metrics.c.metrics[key].op("->")(query.sort_key)) if by_metric else _no_value()
    content: ColumnElement[Any] = metrics.c.metrics
    if not query.include_batch_metrics:
        content = cast(metrics.c.metrics.op("-")(BATCH_METRICS), JSONB)
    return select(
        literal(group).label("what"),
        cast(metrics.c.id, Text).label("ident"),
        value.label("sort_value"),
        metrics.c.total_batches.label("total_batches"),
        metrics.c.end_time.label("end_time"),
        content.label("content"),
        cast(null(), Text).label("state"),
        cast(null(), JSONB).label("resources"),
    ).where(
        metrics.c.trial_id == trial_id,
        metrics.c.metric_group == group,
        ~metrics.c.archived,
        metrics.c.kind != "PROFILING",  # as the index has it
    )


def _checkpoints(trial_id: int, query: GetWorkloadsQuery) -> Select[Any]:
    found = select(
        literal(_CHECKPOINT).label("what"),
        checkpoints.c.uuid.label("ident"),
        _no_value().label("sort_value"),
        func.coalesce(checkpoints.c.steps_completed, 0).label("total_batches"),
        checkpoints.c.report_time.label("end_time"),
        checkpoints.c.metadata.label("content"),
        checkpoints.c.state.label("state"),
        checkpoints.c.resources.label("resources"),
    ).where(checkpoints.c.trial_id == trial_id)
    return found.where(checkpoints.c.state != "DELETED") if query.remove_deleted_checkpoints else found


def _no_value() -> ColumnElement[Any]:
    return cast(null(), DOUBLE_PRECISION)


def _workload(row: Any) -> Workload:
    if row.what == _CHECKPOINT:
        return Workload(
            checkpoint=CheckpointWorkload(
                uuid=row.ident,
                end_time=timestamp(row.end_time),
                state=CheckpointState[row.state],
                resources=sizes_of(row.resources),
                total_batches=row.total_batches,
                metadata=struct_value(row.content),
            )
        )
    key = VALIDATION_METRICS if row.what == VALIDATION else AVG_METRICS
    report = MetricsWorkload(
        end_time=timestamp(row.end_time),
        metrics=Metrics(
            avg_metrics=struct_value(row.content.get(key) or {}),
            batch_metrics=struct_value(row.content.get(BATCH_METRICS) or []),
        ),
        total_batches=row.total_batches,
    )
    return Workload(validation=report) if row.what == VALIDATION else Workload(training=report)
