"""The workloads of a trial: its reports and checkpoints, step by step, in one list
(docs/reference/experiments.md 9.5).

There may be millions of reports. By step, a page costs what it shows and a few hundred rows more, wherever it is: each
kind of workload is read in its own order, from a landmark shortly before the page. By a metric all of them are sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, cast, func, literal, null, select, union_all
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import driver_connection
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.metrics import metrics
from services.api.metrics.groups import AVG_METRICS, BATCH_METRICS, TRAINING, VALIDATION, VALIDATION_METRICS
from services.api.queries.checkpoints.best import sizes_of
from services.api.queries.metric_values import number_in
from services.api.queries.pagination import ALL, SqlPage, sql_page
from services.api.queries.trials.landmarks import Landmarks, step_before
from services.api.wire.base import Pagination, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import CheckpointState, CheckpointWorkload, Metrics, MetricsWorkload
from services.api.wire.ordering import OrderBy
from services.api.wire.trials.metrics import GetWorkloadsQuery, MetricType, Workload, WorkloadFilter

_BY_STEP: Final = frozenset({"", "batches"})
_CHECKPOINT: Final = "checkpoint"
_KEYS: Final = {TRAINING: AVG_METRICS, VALIDATION: VALIDATION_METRICS}
_COUNT_CHECKPOINTS: Final = "SELECT count(*) FROM checkpoints WHERE trial_id = $1 AND NOT ($2 AND state = 'DELETED')"


def _first_of(group: str, parameter: int) -> str:
    """The reports of a group, in their order, from a step on."""
    return f"""
         (SELECT '{group}' AS what, m.id::text AS ident, m.total_batches::bigint AS total_batches, m.end_time,
                 m.metrics AS content, NULL::text AS state, NULL::jsonb AS resources
            FROM metrics m
           WHERE m.trial_id = $1 AND m.metric_group = '{group}' AND NOT m.archived AND m.kind <> 'PROFILING'
             AND m.total_batches >= ${parameter}::integer AND '{group}' = ANY($2::text[])
           ORDER BY m.total_batches LIMIT $7::bigint + $8)"""  # noqa: S608  (of constants)


# What is left out of the content of a report is only taken out of what is shown.
_PAGE: Final = f"""
SELECT what, ident, total_batches, end_time, state, resources,
       CASE WHEN $6 OR what = '{_CHECKPOINT}' THEN content ELSE content - '{BATCH_METRICS}' END AS content
  FROM (SELECT *
          FROM ({_first_of(TRAINING, 3)}
         UNION ALL{_first_of(VALIDATION, 4)}
         UNION ALL
         (SELECT '{_CHECKPOINT}', uuid, coalesce(steps_completed, 0), report_time, metadata, state, resources
            FROM checkpoints
           WHERE trial_id = $1 AND '{_CHECKPOINT}' = ANY($2::text[]) AND NOT ($5 AND state = 'DELETED')
           ORDER BY coalesce(steps_completed, 0), report_time, uuid LIMIT $7::bigint + $8)) AS work
         ORDER BY total_batches, end_time, ident
        OFFSET $7 LIMIT $8) AS page
 ORDER BY total_batches, end_time, ident
"""  # noqa: S608  (of constants)


async def list_workloads(
    connection: AsyncConnection, trial_id: int, query: GetWorkloadsQuery, landmarks: Landmarks
) -> tuple[list[Workload], Pagination]:
    """A page of the workloads of a trial. Raises NotFound, InvalidRequest for a bad page.

    Training reports are shown without a filter only, checkpoints unless validations alone are wanted, and validations
    always.
    """
    driver = await driver_connection(connection)
    names = [TRAINING, VALIDATION] if query.filter is WorkloadFilter.UNSPECIFIED else [VALIDATION]
    groups = await landmarks.groups(driver, trial_id, names)
    count = 0
    if query.filter is not WorkloadFilter.VALIDATION:
        count = await driver.fetchval(_COUNT_CHECKPOINTS, trial_id, query.remove_deleted_checkpoints)
    total = count + sum(group.total for group in groups)
    page = sql_page(total, offset=query.offset, limit=query.limit or ALL)
    page.pagination.limit = query.limit
    if page.limit == 0:
        return [], page.pagination
    if not is_by_step(query):
        return await _by_metric(connection, trial_id, query, page), page.pagination

    descending = query.order_by is OrderBy.DESC
    # No two entries are equal, so the one order is the other from its end.
    start = total - page.start - page.limit if descending else page.start
    step = step_before(groups, count, start)
    passed = {name: group.passed(step) for name, group in zip(names, groups, strict=True)}
    rows = await driver.fetch(
        _PAGE,
        trial_id,
        [*names, _CHECKPOINT] if query.filter is not WorkloadFilter.VALIDATION else names,
        *(passed.get(name, (0, 0))[0] for name in (TRAINING, VALIDATION)),
        query.remove_deleted_checkpoints,
        query.include_batch_metrics,
        start - sum(number for _, number in passed.values()),
        page.limit,
    )
    workloads = [_workload(row) for row in rows]
    return workloads[::-1] if descending else workloads, page.pagination


def is_by_step(query: GetWorkloadsQuery) -> bool:
    """Whether a page costs no more than what it shows."""
    return query.sort_key in _BY_STEP


async def _by_metric(
    connection: AsyncConnection, trial_id: int, query: GetWorkloadsQuery, page: SqlPage
) -> list[Workload]:
    parts = [_reports(trial_id, VALIDATION, VALIDATION_METRICS, query)]
    if query.filter is WorkloadFilter.UNSPECIFIED:
        parts.append(_reports(trial_id, TRAINING, AVG_METRICS, query))
    if query.filter is not WorkloadFilter.VALIDATION:
        parts.append(_checkpoints(trial_id, query))
    work = union_all(*parts).subquery("work")
    descending = query.order_by is OrderBy.DESC
    keys = [work.c.sort_value, work.c.total_batches, work.c.end_time, work.c.ident]
    ordered = select(work).order_by(*((key.desc() if descending else key.asc()).nulls_last() for key in keys))
    rows = await connection.execute(ordered.offset(page.start).limit(page.limit))
    return [_workload(row) for row in rows.mappings()]


def _sort_group(query: GetWorkloadsQuery) -> str:
    if query.group:
        return query.group
    return TRAINING if query.metric_type is MetricType.TRAINING else VALIDATION


def _reports(trial_id: int, group: str, key: str, query: GetWorkloadsQuery) -> Select[Any]:
    value: ColumnElement[Any] = _no_value()
    if group == _sort_group(query):
        value = number_in(metrics.c.metrics[key].op("->")(query.sort_key))
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


def _workload(row: Mapping[Any, Any]) -> Workload:
    what, content = row["what"], row["content"]
    if what == _CHECKPOINT:
        return Workload(
            checkpoint=CheckpointWorkload(
                uuid=row["ident"],
                end_time=timestamp(row["end_time"]),
                state=CheckpointState[row["state"]],
                resources=sizes_of(row["resources"]),
                total_batches=row["total_batches"],
                metadata=struct_value(content),
            )
        )
    report = MetricsWorkload(
        end_time=timestamp(row["end_time"]),
        metrics=Metrics(
            avg_metrics=struct_value(content.get(_KEYS[what]) or {}),
            batch_metrics=struct_value(content.get(BATCH_METRICS) or []),
        ),
        total_batches=row["total_batches"],
    )
    return Workload(validation=report) if what == VALIDATION else Workload(training=report)
