"""Trials as the REST interface shows them.

A page of trials costs the same few statements, however many trials it holds. Source: docs/reference/experiments.md 9.4
and 13.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET, Struct
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    func,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from libs.db.tables.tasks import allocations
from libs.db.tables.trials import trial_tasks, trials
from libs.errors import NotFound
from libs.states.allocation import AllocationState
from services.api.queries.checkpoints.best import best_checkpoints
from services.api.queries.experiments.displayed_states import displayed
from services.api.queries.experiments.experiments import check_exists
from services.api.queries.metric_values import number_in, searcher_metric_of, sign_of_searcher_metric
from services.api.queries.ordering import ascending, asked_tables, descending
from services.api.queries.page_rows import numbered
from services.api.queries.pagination import DEFAULT_SQL_LIMIT, sql_page
from services.api.queries.prepared import PreparedQuery, given, one_of_given, one_of_hidden
from services.api.queries.summaries import PresentTrial, is_marked, present_trials, total_batches_of
from services.api.wire.base import Pagination, double, int64, struct_text, struct_value, timestamp
from services.api.wire.checkpoints.checkpoints import CheckpointWorkload, Metrics, MetricsWorkload
from services.api.wire.experiments.experiments import ExperimentState
from services.api.wire.ordering import OrderBy
from services.api.wire.trials.trials import GetExperimentTrialsQuery, Trial, TrialSortBy, TrialState

_DOCUMENTS: Final = frozenset({"hparams", "summary_metrics"})
"""They are most of a page, and go out as they are stored."""
_SHOWN: Final = (
    "id",
    "experiment_id",
    "start_time",
    "end_time",
    "state",
    "restarts",
    "hparams",
    "total_batches",
    "runner_state",
    "warm_start_checkpoint_uuid",
    "checkpoint_size",
    "checkpoint_count",
    "searcher_metric_value",
    "log_retention_days",
    "metadata",
    "log_policy_matched",
)
VALIDATION_IDS: Final = ("best_validation_id", "latest_validation_id")
_IN_WHOLE: Final = (*VALIDATION_IDS, "summary_metrics")
"""Of a trial that is shown with all it has reported."""
_latest = metrics.alias("latest_validation")
_latest_value = (
    select(number_in(searcher_metric_of(_latest, experiments)) * sign_of_searcher_metric(experiments))
    .where(_latest.c.id == trials.c.latest_validation_id, _latest.c.trial_id == trials.c.id)
    .correlate(trials, experiments)
    .scalar_subquery()
)


async def load_trial(connection: AsyncConnection | DriverConnection, trial_id: int, *, now: datetime) -> Trial:
    """One trial. Raises NotFound.

    now  up to when allocations that still run count for the wall clock time
    """
    rows = await _ONE.rows(connection, trial=trial_id)
    if not rows:
        raise NotFound("trial", trial_id)
    (trial,) = await _as_trials(connection, rows, now=now)
    return trial


async def check_trial_exists(connection: AsyncConnection, trial_id: int) -> None:
    """Raises NotFound unless there is such a trial."""
    found = await connection.execute(select(trials.c.id).where(trials.c.id == trial_id))
    if found.one_or_none() is None:
        raise NotFound("trial", trial_id)


async def list_trials(
    connection: AsyncConnection | DriverConnection,
    experiment_id: int,
    query: GetExperimentTrialsQuery,
    *,
    now: datetime,
) -> tuple[list[Trial], Pagination]:
    """A page of the trials of an experiment. Raises NotFound when there is no such experiment."""
    wanted = {"experiment": experiment_id, "states": _stored_states(query.states)}
    listing = _listing(query.sort_by, query.order_by)
    total: int | None = None
    if query.offset >= 0 and query.limit >= 0:
        # Which page it is is known without the total.
        start, limit = query.offset, query.limit or DEFAULT_SQL_LIMIT
        if found := await listing.rows(connection, **wanted, now=now, start=start, limit=limit):
            page = sql_page(found[0].total, offset=query.offset, limit=query.limit)
            return await _in_order(connection, found, now=now), page.pagination
        total = None if start else 0
    if total is None:
        (counted,) = await _COUNT.rows(connection, **wanted)
        total = counted.total
    if not total:
        await check_exists(connection, experiment_id)
    page = sql_page(total, offset=query.offset, limit=query.limit)
    if page.limit == 0:
        return [], page.pagination
    found = await listing.rows(connection, **wanted, now=now, start=page.start, limit=page.limit)
    return await _in_order(connection, found, now=now), page.pagination


class Tasks(Struct, frozen=True):
    """What a trial has run as: ids in order, states of what the newest one holds or wants, time taken by all."""

    ids: Sequence[str] = ()
    live: Sequence[AllocationState] = ()
    seconds: float = 0.0


class Surroundings(Struct, frozen=True):
    """What belongs to the trials of a page but is stored elsewhere; mappings by trial id, metrics by row id."""

    tasks: Mapping[int, Tasks]
    validations: Mapping[int, MetricsWorkload]
    checkpoints: Mapping[int, CheckpointWorkload]


def select_trials(*further: str) -> Select[Any]:
    """What ``shown_fields`` shows with ``further`` columns, and no more: a page has many rows, and a trial has many."""
    return select(
        *(
            cast(trials.c[name], Text).label(name) if name in _DOCUMENTS else trials.c[name]
            for name in (*_SHOWN, *further)
        ),
        is_marked().label("is_marked"),
        experiments.c.config["max_restarts"].label("max_restarts"),
    ).select_from(trials.join(experiments, experiments.c.id == trials.c.experiment_id))


async def _in_order(
    connection: AsyncConnection | DriverConnection, found: Sequence[Any], *, now: datetime
) -> list[Trial]:
    return await _as_trials(connection, sorted(found, key=attrgetter("place")), now=now)


async def _as_trials(
    connection: AsyncConnection | DriverConnection, rows: Sequence[Any], *, now: datetime
) -> list[Trial]:
    around = await surroundings_of(connection, rows, now=now)
    present = await present_trials(connection, [row.id for row in rows if row.is_marked])
    return [
        _as_trial(row, around, present.get(row.id, PresentTrial(row.total_batches, row.summary_metrics)))
        for row in rows
    ]


def _as_trial(row: Any, around: Surroundings, present: PresentTrial) -> Trial:
    return Trial(summary_metrics=struct_text(present.summary), **fields_but_summary(row, around, present.total_batches))


async def surroundings_of(
    connection: AsyncConnection | DriverConnection, rows: Sequence[Any], *, now: datetime
) -> Surroundings:
    """rows  of ``select_trials`` with ``VALIDATION_IDS``;  now  as for ``load_trial``"""
    ids = [row.id for row in rows]
    metric_ids = {key for row in rows for key in (row.best_validation_id, row.latest_validation_id) if key is not None}
    return Surroundings(
        tasks=await tasks_of(connection, ids, now),
        validations=await _validations(connection, ids, metric_ids),
        checkpoints=await best_checkpoints(connection, ids),
    )


def fields_but_summary(row: Any, around: Surroundings, total_batches: int) -> dict[str, Any]:
    """The fields of a ``Trial`` by their names, all but ``summary_metrics``.

    row  of ``select_trials`` with ``VALIDATION_IDS``
    """
    return {
        "best_validation": around.validations.get(row.best_validation_id),
        "latest_validation": around.validations.get(row.latest_validation_id),
        "best_checkpoint": around.checkpoints.get(row.id),
        **shown_fields(row, around.tasks.get(row.id, NO_TASKS), total_batches),
    }


def shown_fields(row: Any, tasks: Tasks, total_batches: int) -> dict[str, Any]:
    """What is shown of a trial wherever one is shown, by the names of the fields of ``Trial``.

    row  of ``select_trials``
    """
    task_ids = list(tasks.ids)
    return {
        "id": row.id,
        "experiment_id": row.experiment_id,
        "start_time": timestamp(row.start_time),
        "end_time": timestamp(row.end_time),
        "state": TrialState[displayed(row.state, tasks.live)],
        "restarts": min(row.restarts, row.max_restarts) if isinstance(row.max_restarts, int) else row.restarts,
        "hparams": struct_text(row.hparams),
        "total_batches_processed": total_batches,
        "runner_state": row.runner_state,
        "wall_clock_time": tasks.seconds,
        "warm_start_checkpoint_uuid": row.warm_start_checkpoint_uuid or "",
        "task_id": task_ids[0] if task_ids else "",
        "total_checkpoint_size": int64(row.checkpoint_size),
        "checkpoint_count": row.checkpoint_count,
        "task_ids": task_ids,
        "searcher_metric_value": UNSET if row.searcher_metric_value is None else double(row.searcher_metric_value),
        "log_retention_days": UNSET if row.log_retention_days is None else row.log_retention_days,
        "metadata": UNSET if row.metadata is None else struct_value(row.metadata),
        "log_policy_matched": UNSET if row.log_policy_matched is None else row.log_policy_matched,
    }


async def tasks_of(
    connection: AsyncConnection | DriverConnection, trial_ids: Sequence[int], now: datetime
) -> dict[int, Tasks]:
    """What each of the trials has run as, by trial; those without any task are left out."""
    found: dict[int, Tasks] = {}
    for row in await _TASKS.rows(connection, trials=trial_ids, now=now):
        before = found.get(row.trial_id, NO_TASKS)
        # What an ACTIVE trial does now is what its newest task does.
        found[row.trial_id] = Tasks(
            ids=(*before.ids, row.task_id),
            live=[AllocationState(state) for state in row.live or ()],
            seconds=before.seconds + float(row.seconds or 0),
        )
    return found


async def _validations(
    connection: AsyncConnection | DriverConnection, trial_ids: Sequence[int], metric_ids: set[int]
) -> dict[int, MetricsWorkload]:
    if not metric_ids:
        return {}
    rows = await _VALIDATIONS.rows(connection, trials=trial_ids, reports=list(metric_ids))
    return {
        row.id: MetricsWorkload(
            end_time=timestamp(row.end_time),
            metrics=Metrics(avg_metrics=struct_text(row.metrics)),
            total_batches=row.total_batches or 0,
        )
        for row in rows
    }


def _stored_states(states: Sequence[ExperimentState]) -> list[str] | None:
    """None is all of them."""
    named = {state.value.removeprefix("STATE_") for state in states if state is not ExperimentState.UNSPECIFIED}
    return sorted(named) or None


_SORT_COLUMNS: Final[dict[TrialSortBy, ColumnElement[Any]]] = {
    TrialSortBy.UNSPECIFIED: trials.c.id,
    TrialSortBy.ID: trials.c.id,
    TrialSortBy.START_TIME: trials.c.start_time,
    TrialSortBy.END_TIME: trials.c.end_time,
    TrialSortBy.STATE: trials.c.state,
    TrialSortBy.BEST_VALIDATION_METRIC: trials.c.searcher_metric_signed,
    TrialSortBy.LATEST_VALIDATION_METRIC: _latest_value,
    TrialSortBy.BATCHES_PROCESSED: total_batches_of(),
    TrialSortBy.RESTARTS: trials.c.restarts,
    TrialSortBy.CHECKPOINT_SIZE: trials.c.checkpoint_size,
    TrialSortBy.LOG_RETENTION_DAYS: trials.c.log_retention_days,
}


_NOW: Final = bindparam("now", None, type_=DateTime(timezone=True))
_STATES: Final = bindparam("states", None, type_=ARRAY(Text))
_OF_EXPERIMENT: Final = and_(
    trials.c.experiment_id == given("experiment", trials.c.experiment_id),
    or_(_STATES.is_(None), trials.c.state == any_(_STATES)),
)
NO_TASKS: Final = Tasks()

_ONE: Final = PreparedQuery(select_trials(*_IN_WHOLE).where(trials.c.id == given("trial", trials.c.id)))
_TOTAL: Final = select(func.count().label("total")).select_from(trials).where(_OF_EXPERIMENT)
_COUNT: Final = PreparedQuery(_TOTAL)
_TASKS: Final = PreparedQuery(
    select(
        trial_tasks.c.trial_id,
        trial_tasks.c.task_id,
        func.array_agg(allocations.c.state)
        .filter(allocations.c.allocation_id.is_not(None), allocations.c.released_at.is_(None))
        .label("live"),
        func.sum(
            func.greatest(
                func.extract("epoch", func.coalesce(allocations.c.end_time, _NOW) - allocations.c.start_time), 0
            )
        )
        .filter(allocations.c.start_time.is_not(None))
        .label("seconds"),
    )
    .outerjoin(allocations, allocations.c.task_id == trial_tasks.c.task_id)
    .where(one_of_given(trial_tasks.c.trial_id, "trials"))
    .group_by(trial_tasks.c.trial_id, trial_tasks.c.position)
    .order_by(trial_tasks.c.trial_id, trial_tasks.c.position)
)
# The trial ids are there for the partitions of the table.
_VALIDATIONS: Final = PreparedQuery(
    select(
        metrics.c.id,
        metrics.c.total_batches,
        metrics.c.end_time,
        func.coalesce(metrics.c.metrics["validation_metrics"].astext, "{}").label("metrics"),
    ).where(one_of_hidden(metrics.c.id, "reports"), one_of_hidden(metrics.c.trial_id, "trials"))
)


@cache
def _listing(sort_by: TrialSortBy, order_by: OrderBy) -> PreparedQuery:
    """A page of the trials of an experiment, in one of the few orders that there are."""
    if sort_by is TrialSortBy.DURATION:
        column: ColumnElement[Any] = func.coalesce(trials.c.end_time, _NOW) - trials.c.start_time
    else:
        column = _SORT_COLUMNS[sort_by]
    direction = descending if order_by is OrderBy.DESC else ascending
    order = [direction(each) for each in dict.fromkeys((column, trials.c.id))]
    start, limit = (bindparam(name, None, type_=BigInteger) for name in ("start", "limit"))
    listed: FromClause = trials
    if experiments in asked_tables(order):
        listed = trials.join(experiments, experiments.c.id == trials.c.experiment_id)
    wanted = select(trials.c.id).select_from(listed).where(_OF_EXPERIMENT).order_by(*order).offset(start).limit(limit)
    page = numbered(select_trials(*_IN_WHOLE), trials.c.id, wanted)
    return PreparedQuery(page.add_columns(_TOTAL.correlate(None).scalar_subquery().label("total")))
