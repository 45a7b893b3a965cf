"""Checkpoints as the REST interface shows them, with the training they come from.

Source: docs/reference/experiments.md 10.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, FromClause, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import mask_secrets
from libs.db.any_of import any_of
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.errors import NotFound
from libs.searchers.reports import read_number
from services.api.queries.checkpoints.best import sizes_of
from services.api.queries.metric_values import (
    number_in,
    report_at_step,
    searcher_metric_of,
    sign_of_searcher_metric,
)
from services.api.queries.page_rows import rows_of_page
from services.api.queries.pagination import list_bounds
from services.api.wire.base import Pagination, double, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import (
    Checkpoint,
    CheckpointSortBy,
    CheckpointState,
    CheckpointTraining,
    GetCheckpointsQuery,
    Metrics,
)
from services.api.wire.ordering import OrderBy

_validation = metrics.alias("validation")
_training = metrics.alias("training")
_searcher_metric = searcher_metric_of(_validation, experiments)

_SORT_COLUMNS: Final = {
    CheckpointSortBy.UNSPECIFIED: "trial_id",
    CheckpointSortBy.UUID: "uuid",
    CheckpointSortBy.TRIAL_ID: "trial_id",
    CheckpointSortBy.BATCH_NUMBER: "steps_completed",
    CheckpointSortBy.END_TIME: "report_time",
    CheckpointSortBy.STATE: "state",
}
_KEYS: Final = ("uuid", "trial_id", "experiment_id", "steps_completed", "report_time", "state")
"""What a list is ordered by, and what finds the reports that it is ordered by."""


async def load_checkpoint(connection: AsyncConnection, uuid: str, *, reader_id: int) -> Checkpoint:
    """One checkpoint, as that user sees it. Raises NotFound."""
    row = (await connection.execute(_select_all().where(checkpoints.c.uuid == uuid))).one_or_none()
    if row is None:
        raise NotFound("checkpoint", uuid)
    return _as_checkpoint(row, reader_id)


async def checkpoints_by_uuid(
    connection: AsyncConnection, uuids: Iterable[str], *, reader_id: int
) -> dict[str, Checkpoint]:
    """Those of ``uuids`` that are there, as that user sees them."""
    rows = await connection.execute(_select_all().where(any_of(checkpoints.c.uuid, uuids)))
    return {row.uuid: _as_checkpoint(row, reader_id) for row in rows}


async def list_checkpoints(
    connection: AsyncConnection,
    query: GetCheckpointsQuery,
    *,
    reader_id: int,
    experiment_id: int | None = None,
    trial_id: int | None = None,
) -> tuple[list[Checkpoint], Pagination]:
    """A page of the checkpoints of an experiment, or of a trial, that is known to exist, as that user sees them.

    Raises InvalidRequest for an offset that is out of bounds.
    """
    owner = checkpoints.c.trial_id == trial_id if trial_id is not None else checkpoints.c.experiment_id == experiment_id
    conditions = [owner, *_in_states(query.states)]
    counting = select(func.count()).select_from(checkpoints).where(*conditions)
    total = (await connection.execute(counting)).scalar_one()
    page = list_bounds(total, offset=query.offset, limit=query.limit)
    if page.start_index == page.end_index:
        return [], page
    wanted = _in_order(conditions, query).offset(page.start_index).limit(page.end_index - page.start_index)
    rows = await rows_of_page(connection, _select_all(), checkpoints.c.uuid, wanted)
    return [_as_checkpoint(row, reader_id) for row in rows], page


def _in_order(conditions: Sequence[ColumnElement[bool]], query: GetCheckpointsQuery) -> Select[Any]:
    """The keys of the checkpoints, in the order of the list.

    They are found before the reports that they may be ordered by: joined at once, the database expects so many rows
    that it looks through the checkpoints of everybody with several processes.
    """
    found = select(*(checkpoints.c[name] for name in _KEYS)).where(*conditions).cte("found")
    found = found.prefix_with("MATERIALIZED")
    source: FromClause = found
    if query.sort_by_metric or query.sort_by_attr is CheckpointSortBy.SEARCHER_METRIC:
        source = found.outerjoin(experiments, experiments.c.id == found.c.experiment_id).outerjoin(
            _validation, report_at_step(_validation, found, "validation")
        )
    return select(found.c.uuid).select_from(source).order_by(*_order(query, found))


def _select_all() -> Select[Any]:
    return select(
        *checkpoints.c,
        experiments.c.config.label("config"),
        experiments.c.owner_id.label("owner_id"),
        trials.c.hparams.label("hparams"),
        _validation.c.metrics.label("validation"),
        _training.c.metrics.label("training"),
        _searcher_metric.label("searcher_metric"),
    ).select_from(
        checkpoints.outerjoin(trials, trials.c.id == checkpoints.c.trial_id)
        .outerjoin(experiments, experiments.c.id == checkpoints.c.experiment_id)
        .outerjoin(_validation, report_at_step(_validation, checkpoints, "validation"))
        .outerjoin(_training, report_at_step(_training, checkpoints, "training"))
    )


def _as_checkpoint(row: Any, reader_id: int) -> Checkpoint:
    return Checkpoint(
        task_id=row.task_id,
        allocation_id=UNSET if row.allocation_id is None else row.allocation_id,
        uuid=row.uuid,
        report_time=timestamp(row.report_time),
        resources=sizes_of(row.resources),
        metadata=struct_value(row.metadata),
        state=CheckpointState[row.state],
        training=_training_of(row, reader_id),
        storage_id=UNSET if row.storage_id is None else row.storage_id,
    )


def _training_of(row: Any, reader_id: int) -> CheckpointTraining:
    if row.trial_id is None or row.config is None:
        return CheckpointTraining()
    value = read_number(row.searcher_metric)
    return CheckpointTraining(
        trial_id=row.trial_id,
        experiment_id=row.experiment_id,
        experiment_config=struct_value(mask_secrets(row.config, to_owner=row.owner_id == reader_id)),
        hparams=struct_value(row.hparams or {}),
        training_metrics=_metrics(row.training, "avg_metrics"),
        validation_metrics=_metrics(row.validation, "validation_metrics"),
        searcher_metric=None if value is None else double(value),
    )


def _metrics(report: dict[str, Any] | None, key: str) -> Metrics:
    report = report or {}
    return Metrics(
        avg_metrics=struct_value(report.get(key) or {}), batch_metrics=struct_value(report.get("batch_metrics") or [])
    )


def _in_states(states: Sequence[CheckpointState]) -> list[ColumnElement[bool]]:
    named = {state.value.removeprefix("STATE_") for state in states if state is not CheckpointState.UNSPECIFIED}
    return [checkpoints.c.state.in_(sorted(named))] if named else []


def _order(query: GetCheckpointsQuery, found: FromClause) -> list[ColumnElement[Any]]:
    """By the searcher metric, the best come first unless a direction is given, in both lists.

    The reference begins the list of a trial with those that are not validated; the SDK takes the first as the best.
    """
    ties = [found.c.report_time, found.c.uuid]
    descending = query.order_by is OrderBy.DESC
    if query.sort_by_metric:
        value = number_in(_validation.c.metrics["validation_metrics"][query.sort_by_metric])
    elif query.sort_by_attr is CheckpointSortBy.SEARCHER_METRIC:
        value = number_in(_searcher_metric)
        if query.order_by is OrderBy.UNSPECIFIED:
            value = value * sign_of_searcher_metric(experiments)
    else:
        value = found.c[_SORT_COLUMNS[query.sort_by_attr]]
    return [(value.desc() if descending else value.asc()).nulls_last(), *ties]
