"""Searches of runs, each shown with what it shares with its experiment (docs/reference/platform.md 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import labels_of, part, text_in
from libs.db.any_of import any_of
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspaces
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import check_project_exists
from services.api.queries.page_rows import rows_of_page
from services.api.queries.pagination import sql_page
from services.api.queries.run_totals import IN_SIGHT, STAYS, counting, joined_for
from services.api.queries.search.bounded_summaries import (
    BoundedSummary,
    bound,
    large_summaries,
    summary_unless_large,
)
from services.api.queries.search.conditions import RUNS, SearchTable, as_of_now, order, where
from services.api.queries.search.fixed_columns import is_multitrial, local_id, run_duration
from services.api.queries.search.language.filters import Filter, parse_filter
from services.api.queries.search.language.sorting import parse_sort
from services.api.queries.search.marked_summaries import marked_summaries
from services.api.queries.summaries import is_marked
from services.api.wire.base import Pagination, double, int64, struct_value, timestamp
from services.api.wire.search.runs import FlatRun, FlatRunExperiment
from services.api.wire.search.searches import SearchRequest
from services.api.wire.trials.trials import TrialState

_SHOWN: Final = select(
    *(column for column in trials.c if column is not trials.c.summary_metrics),
    summary_unless_large().label("summary_metrics"),
    experiments.c.config,
    experiments.c.parent_id,
    experiments.c.progress,
    experiments.c.unmanaged,
    experiments.c.owner_id,
    experiments.c.archived.label("parent_archived"),
    experiments.c.external_id.label("external_experiment_id"),
    projects.c.name.label("project_name"),
    workspaces.c.id.label("workspace_id"),
    workspaces.c.name.label("workspace_name"),
    local_id.label("shown_local_id"),
    run_duration.label("duration"),
    is_multitrial.label("is_multitrial"),
    is_marked().label("is_marked"),
).select_from(
    trials.join(experiments, experiments.c.id == trials.c.experiment_id)
    .join(users, users.c.id == experiments.c.owner_id)
    .join(projects, projects.c.id == trials.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
)
"""What is shown of a run, but for the place on its page; built once, not for each request."""


async def search_runs(
    connection: AsyncConnection, request: SearchRequest, *, rights: UserRights
) -> tuple[list[FlatRun], Pagination]:
    """A page of the runs that the filter lets through and that the caller may see.

    Raises InvalidRequest, NotFound for an unknown project.
    """
    filtered = parse_filter(request.filter) if request.filter else None
    keys, root = parse_sort(request.sort), None if filtered is None else filtered.root
    table = await as_of_now(connection, RUNS, root, keys, project_id=request.project_id)
    conditions = run_conditions(table, filtered, request.project_id)
    conditions.append(rights.where(Action.VIEW_EXPERIMENT, projects.c.workspace_id))
    sorting = order(table, keys)
    if request.project_id:
        await check_project_exists(connection, request.project_id)
    total = (await connection.execute(counting(conditions))).scalar_one()
    page = sql_page(total, offset=request.offset, limit=request.limit)
    if page.limit == 0:
        return [], page.pagination
    wanted = (
        select(trials.c.id)
        .select_from(joined_for([*conditions, *sorting]))
        .where(*conditions)
        .order_by(*sorting)
        .offset(page.start)
        .limit(page.limit)
    )
    rows = await rows_of_page(connection, _SHOWN, trials.c.id, wanted)
    summaries = await _summaries(connection, rows)
    return [_flat_run(row, summaries[row.id]) for row in rows], page.pagination


async def select_run_ids(
    connection: AsyncConnection, filter_text: str, project_id: int, *, rights: UserRights, right: Action
) -> list[int]:
    """Ids of the runs of a project that a filter lets through and with which the caller may do this, ascending.

    Raises InvalidRequest.
    """
    wanted = parse_filter(filter_text) if filter_text else None
    root = None if wanted is None else wanted.root
    table = await as_of_now(connection, RUNS, root, [], project_id=project_id)
    conditions = [*run_conditions(table, wanted, project_id), rights.where(right, projects.c.workspace_id)]
    query = select(trials.c.id).select_from(joined_for(conditions)).where(*conditions).order_by(trials.c.id)
    return list(await connection.scalars(query))


async def experiments_of(connection: AsyncConnection, run_ids: Sequence[int]) -> list[int]:
    """Ids of the experiments that the runs are of, each once."""
    query = select(trials.c.experiment_id).where(any_of(trials.c.id, run_ids)).distinct()
    return list(await connection.scalars(query))


def run_conditions(table: SearchTable, wanted: Filter | None, project_id: int) -> list[ColumnElement[bool]]:
    """project_id  0 is every project. Raises InvalidRequest."""
    conditions: list[ColumnElement[bool]] = [STAYS]
    if wanted is not None:
        conditions.append(where(table, wanted.root))
        if not wanted.show_archived:
            conditions += [~trials.c.archived, IN_SIGHT]
    if project_id:
        conditions.append(trials.c.project_id == project_id)
    return conditions


async def _summaries(connection: AsyncConnection, rows: Sequence[Any]) -> dict[int, BoundedSummary]:
    found = await marked_summaries(connection, [row.id for row in rows if row.is_marked])
    found |= {
        row.id: bound(row.summary_metrics) for row in rows if not row.is_marked and row.summary_metrics is not None
    }
    missing = [row.id for row in rows if row.id not in found]
    large = await large_summaries(connection, missing)
    return found | {ident: large.get(ident, BoundedSummary({})) for ident in missing}  # one may be deleted meanwhile


def _flat_run(row: Any, summary: BoundedSummary) -> FlatRun:
    return FlatRun(
        id=row.id,
        local_id=row.shown_local_id,
        start_time=timestamp(row.start_time),
        end_time=timestamp(row.end_time),
        state=TrialState[row.state],
        labels=labels_of(row.config),
        checkpoint_size=int64(row.checkpoint_size),
        checkpoint_count=row.checkpoint_count,
        searcher_metric_value=UNSET if row.searcher_metric_value is None else double(row.searcher_metric_value),
        external_run_id=UNSET if row.external_id is None else row.external_id,
        hyperparameters=struct_value(row.hparams),
        summary_metrics=struct_value(summary.document),
        summary_metrics_left_out=summary.left_out or UNSET,
        user_id=row.owner_id,
        duration=row.duration,
        project_id=row.project_id,
        project_name=row.project_name,
        workspace_id=row.workspace_id,
        workspace_name=row.workspace_name,
        parent_archived=row.parent_archived,
        experiment=_experiment(row),
        metadata=UNSET if row.metadata is None else struct_value(row.metadata),
        archived=row.archived,
        log_policy_matched=UNSET if row.log_policy_matched is None else row.log_policy_matched,
    )


def _experiment(row: Any) -> FlatRunExperiment:
    config: dict[str, Any] = row.config
    searcher = part(config, "searcher")
    return FlatRunExperiment(
        id=row.experiment_id,
        name=text_in(config, "name"),
        description=text_in(config, "description"),
        searcher_type=text_in(searcher, "name"),
        searcher_metric=text_in(searcher, "metric"),
        resource_pool=text_in(part(config, "resources"), "resource_pool"),
        progress=double(row.progress or 0.0),
        is_multitrial=row.is_multitrial,
        unmanaged=row.unmanaged,
        forked_from=row.parent_id,
        external_experiment_id=UNSET if row.external_experiment_id is None else row.external_experiment_id,
    )
