"""Experiments as the REST interface shows them: one by one, and in lists that are filtered and sorted by the database.

Source: docs/reference/experiments.md 13.2 and 13.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, FromClause, Select, UnaryExpression, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.visitors import replacement_traverse

from libs.config import mask_secrets
from libs.config.stored import labels_of, part, text_in
from libs.db.any_of import any_of
from libs.db.engine import DriverConnection
from libs.db.tables.experiments import (
    best_runs,
    experiment_counts,
    experiment_labels,
    experiments,
    model_definitions,
    natural_experiment_name,
    trigrams_of_experiment_name,
)
from libs.db.tables.trials import trials
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspaces
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.displayed_states import displayed, live_states_by_job
from services.api.queries.experiments.durations import whole_seconds
from services.api.queries.experiments.labels import having_labels
from services.api.queries.experiments.original_config import mask_original_config
from services.api.queries.matching import Matching, matching_rows
from services.api.queries.ordering import ascending, asked_tables, descending, joined_for
from services.api.queries.page_rows import rows_of_list, rows_of_page
from services.api.queries.pagination import sql_page
from services.api.queries.prepared import PreparedQuery, given
from services.api.queries.totals import by_part, total_in_groups, total_of_label
from services.api.queries.trigrams import having_trigrams
from services.api.wire.base import Pagination, double, int64, struct_value, timestamp
from services.api.wire.experiments.experiments import Experiment, ExperimentSortBy, ExperimentState, GetExperimentsQuery
from services.api.wire.ordering import OrderBy

NOTES_LEFT_OUT: Final = "omitted"
"""Stands in lists for notes, which may be long."""

best_trials = trials.alias("best_trial")
num_trials = (
    select(func.count())
    .select_from(trials)
    .where(trials.c.experiment_id == experiments.c.id)
    .correlate(experiments)
    .scalar_subquery()
)
model_definition_size = (
    select(model_definitions.c.size_bytes)
    .where(model_definitions.c.experiment_id == experiments.c.id)
    .correlate(experiments)
    .scalar_subquery()
)
experiment_duration = whole_seconds(experiments.c.start_time, experiments.c.end_time)
shown_name = func.coalesce(func.nullif(users.c.display_name, ""), users.c.username)
_SORT_COLUMNS: Final[dict[ExperimentSortBy, ColumnElement[Any]]] = {
    ExperimentSortBy.UNSPECIFIED: experiments.c.id,
    ExperimentSortBy.ID: experiments.c.id,
    ExperimentSortBy.DESCRIPTION: natural(func.coalesce(experiments.c.config["description"].astext, "")),
    ExperimentSortBy.NAME: natural_experiment_name,
    ExperimentSortBy.START_TIME: experiments.c.start_time,
    ExperimentSortBy.END_TIME: experiments.c.end_time,
    ExperimentSortBy.STATE: experiments.c.state,
    ExperimentSortBy.NUM_TRIALS: num_trials,
    ExperimentSortBy.PROGRESS: func.coalesce(experiments.c.progress, 0.0),
    ExperimentSortBy.USER: natural(shown_name),
    ExperimentSortBy.FORKED_FROM: experiments.c.parent_id,
    ExperimentSortBy.RESOURCE_POOL: natural(experiments.c.config["resources"]["resource_pool"].astext),
    ExperimentSortBy.PROJECT_ID: experiments.c.project_id,
    ExperimentSortBy.CHECKPOINT_SIZE: experiments.c.checkpoint_size,
    ExperimentSortBy.CHECKPOINT_COUNT: experiments.c.checkpoint_count,
    ExperimentSortBy.SEARCHER_METRIC_VAL: best_trials.c.searcher_metric_value,
}


async def load_experiment(
    connection: AsyncConnection | DriverConnection, experiment_id: int, *, reader_id: int
) -> Experiment:
    """One experiment with its notes and the ids of its trials, as that user sees it. Raises NotFound."""
    rows = await _one().rows(connection, id=experiment_id)
    if not rows:
        raise NotFound("experiment", experiment_id)
    (experiment,) = await _as_experiments(connection, rows, reader_id)
    (row,) = rows
    experiment.notes = row.notes
    experiment.description = shown_description(row.config, row.error)
    experiment.trial_ids = row.trial_ids
    return experiment


@cache
def _one() -> PreparedQuery:
    of_experiment = select(trials.c.id).where(trials.c.experiment_id == experiments.c.id).order_by(trials.c.id)
    trial_ids = func.array(of_experiment.correlate(experiments).scalar_subquery()).label("trial_ids")
    return PreparedQuery(_select_all().add_columns(trial_ids).where(experiments.c.id == given("id", experiments.c.id)))


def shown_description(config: Mapping[str, Any], error: str | None) -> str:
    """The description with the reason of a failure: of all texts, ``det experiment describe`` prints it alone."""
    return " ".join(part for part in (text_in(config, "description"), f"[{error}]" if error else "") if part)


async def load_config(connection: AsyncConnection, experiment_id: int) -> dict[str, Any]:
    """The stored configuration, secrets and all. Raises NotFound."""
    found = await connection.execute(select(experiments.c.config).where(experiments.c.id == experiment_id))
    config: dict[str, Any] | None = found.scalar_one_or_none()
    if config is None:
        raise NotFound("experiment", experiment_id)
    return config


async def check_exists(connection: AsyncConnection | DriverConnection, experiment_id: int) -> None:
    """Raises NotFound unless there is such an experiment."""
    if not await _EXPERIMENT.records(connection, id=experiment_id):
        raise NotFound("experiment", experiment_id)


async def list_experiments(
    connection: AsyncConnection, query: GetExperimentsQuery, *, rights: UserRights
) -> tuple[list[Experiment], Pagination]:
    """A page of the experiments that fulfil ``query`` and that the caller may see, as they see them.

    Raises NotFound for an unknown project, InvalidRequest.
    """
    if query.project_id:
        await check_project_exists(connection, query.project_id)
    shown, pagination = await experiments_page(
        connection,
        [
            *_conditions(query),
            *await _of_owners(connection, query),
            rights.where(Action.VIEW_EXPERIMENT, projects.c.workspace_id),
        ],
        _order(query),
        labels=query.labels,
        project_id=query.project_id or 0,
        offset=query.offset,
        limit=query.limit,
        reader_id=rights.principal.user_id,
    )
    if not query.show_trial_data:
        for experiment in shown:
            experiment.best_trial_searcher_metric = UNSET
    return shown, pagination


async def experiments_page(
    connection: AsyncConnection,
    conditions: Sequence[ColumnElement[bool]],
    order: Sequence[ColumnElement[Any]],
    *,
    labels: Sequence[str] = (),
    by_index: Matching | None = None,
    is_in_index: bool = False,
    total: int | None = None,
    project_id: int = 0,
    offset: int,
    limit: int,
    reader_id: int,
) -> tuple[list[Experiment], Pagination]:
    """A page of the experiments that fulfil all conditions, as lists show them; ``best_trials`` may be asked about.

    labels       which all of them have
    by_index     a further condition, that an index answers
    is_in_index  whether the order is that of an index
    total        how many there are, where somebody knows
    project_id   the one that a condition asks for; 0 for none
    Raises InvalidRequest.
    """
    known_total = _total_known(conditions, labels) if by_index is None else by_index.total
    conditions = [*conditions, *having_labels(labels)]
    if total is None:
        total = (await connection.execute(counting(conditions) if known_total is None else known_total)).scalar_one()
    page = sql_page(total, offset=offset, limit=limit)
    if page.limit == 0:
        return [], page.pagination
    rows: list[Any] = []
    if project_id and by_index is None and known_total is not None and _is_by_searcher_metric(order):
        wanted = _by_searcher_metric(conditions, order, project_id).offset(page.start).limit(page.limit)
        rows = await rows_of_page(connection, _select_all(), experiments.c.id, wanted)
    if len(rows) < page.limit:
        asked = [*conditions, *order] if by_index is None else [*conditions, *order, by_index.holds]
        keys = select(experiments.c.id).select_from(_joined_for(asked)).where(*conditions)
        if by_index is None:
            rows = await rows_of_list(connection, _select_all(), keys, order, page, known_total=known_total)
        else:
            rows = await matching_rows(
                connection, _select_all(), keys, by_index, order=order, page=page, is_in_index=is_in_index
            )
    shown = await _as_experiments(connection, rows, reader_id)
    for experiment, row in zip(shown, rows, strict=True):
        # Lists leave out what may be long; one experiment by itself has it. They add the name of the best trial.
        experiment.original_config = ""
        experiment.external_trial_id = UNSET if row.best_external_id is None else row.best_external_id
        if experiment.notes:
            experiment.notes = NOTES_LEFT_OUT
    return shown, page.pagination


def _is_by_searcher_metric(order: Sequence[ColumnElement[Any]]) -> bool:
    first, *others = order
    while isinstance(first, UnaryExpression):
        first = first.element
    return first is best_trials.c.searcher_metric_value and best_trials not in asked_tables(others)


def _by_searcher_metric(
    conditions: Sequence[ColumnElement[bool]], order: Sequence[ColumnElement[Any]], project_id: int
) -> Select[Any]:
    """The ids of the experiments whose best trials have a metric, which are before all others in either direction.

    Runs of a project are in an index by their metric: from there to the experiments that they are the best ones of, a
    page looks at no others.
    """

    def replace(element: Any, **_: Any) -> Any:
        return trials.c.searcher_metric_value if element is best_trials.c.searcher_metric_value else None

    listed = trials.join(best_runs, best_runs.c.trial_id == trials.c.id)
    listed = listed.join(experiments, experiments.c.id == best_runs.c.experiment_id)
    joined = joined_for(
        [*conditions, *order[1:]], listed, owner_id=experiments.c.owner_id, project_id=experiments.c.project_id
    )
    by_value = [replacement_traverse(each, {}, replace) for each in order]
    has_value = [trials.c.project_id == project_id, trials.c.searcher_metric_value.is_not(None)]
    return select(experiments.c.id).select_from(joined).where(*has_value, *conditions).order_by(*by_value)


def counting(conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """The number of experiments that fulfil all of them, by a look at each."""
    return select(func.count()).select_from(_joined_for(conditions)).where(*conditions)


def counting_by_part(conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """The same by the parts that they are in (libs/db/tables/experiments.py)."""
    return by_part(select(func.count()).select_from(_joined_for(conditions)).where(*conditions), experiments.c.id)


def _total_known(conditions: Sequence[ColumnElement[bool]], labels: Sequence[str]) -> Select[Any] | None:
    """The total without a look at experiments; None where it has to be counted, as that of several labels has."""
    match list(dict.fromkeys(labels)):
        case []:
            return total_in_groups(experiments, experiment_counts, conditions)
        case [label]:
            return total_of_label(label, conditions)
        case _:
            return None


def _joined() -> FromClause:
    return (
        experiments.join(users, users.c.id == experiments.c.owner_id)
        .join(projects, projects.c.id == experiments.c.project_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .outerjoin(best_trials, best_trials.c.id == experiments.c.best_trial_id)
    )


def _joined_for(expressions: Sequence[ColumnElement[Any]]) -> FromClause:
    """Experiments, and of the others those that conditions or an order ask about; with each of them all are there."""
    joined = joined_for(expressions, experiments, owner_id=experiments.c.owner_id, project_id=experiments.c.project_id)
    if best_trials in asked_tables(expressions):
        joined = joined.outerjoin(best_trials, best_trials.c.id == experiments.c.best_trial_id)
    return joined


def _select_all() -> Select[Any]:
    columns = [column for column in experiments.c if not column.name.startswith("ssh_")]
    return select(
        *columns,
        users.c.username,
        shown_name.label("shown_name"),
        experiment_duration.label("duration"),
        projects.c.name.label("project_name"),
        projects.c.owner_id.label("project_owner_id"),
        workspaces.c.id.label("workspace_id"),
        workspaces.c.name.label("workspace_name"),
        or_(projects.c.archived, workspaces.c.archived).label("parent_archived"),
        best_trials.c.searcher_metric_value.label("best_value"),
        best_trials.c.external_id.label("best_external_id"),
        num_trials.label("num_trials"),
        model_definition_size.label("model_definition_size"),
    ).select_from(_joined())


async def _as_experiments(
    connection: AsyncConnection | DriverConnection, rows: Sequence[Any], reader_id: int
) -> list[Experiment]:
    active_jobs = [row.job_id for row in rows if row.state == "ACTIVE"]
    live = await live_states_by_job(connection, active_jobs)
    return [_as_experiment(row, displayed(row.state, live.get(row.job_id, ())), reader_id) for row in rows]


def _as_experiment(row: Any, state: str, reader_id: int) -> Experiment:
    to_owner = row.owner_id == reader_id
    config: dict[str, Any] = row.config
    searcher = part(config, "searcher")
    shown_config = struct_value(mask_secrets(config, to_owner=to_owner))
    return Experiment(
        id=row.id,
        name=text_in(config, "name"),
        description=text_in(config, "description"),
        labels=labels_of(config),
        state=ExperimentState[state],
        start_time=timestamp(row.start_time),
        end_time=timestamp(row.end_time),
        duration=row.duration,
        archived=row.archived,
        num_trials=row.num_trials,
        user_id=row.owner_id,
        username=row.username,
        display_name=row.shown_name,
        resource_pool=text_in(part(config, "resources"), "resource_pool"),
        searcher_type=text_in(searcher, "name"),
        searcher_metric=text_in(searcher, "metric"),
        hyperparameters=part(shown_config, "hyperparameters"),
        notes=row.notes,
        job_id=row.job_id,
        forked_from=row.parent_id,
        progress=None if row.progress is None else double(row.progress),
        project_id=row.project_id,
        project_name=row.project_name,
        project_owner_id=row.project_owner_id,
        workspace_id=row.workspace_id,
        workspace_name=row.workspace_name,
        parent_archived=row.parent_archived,
        config=shown_config,
        original_config=mask_original_config(row.original_config, to_owner=to_owner),
        checkpoint_size=int64(row.checkpoint_size),
        checkpoint_count=row.checkpoint_count,
        best_trial_id=UNSET if row.best_trial_id is None else row.best_trial_id,
        best_trial_searcher_metric=UNSET if row.best_value is None else double(row.best_value),
        external_experiment_id=UNSET if row.external_id is None else row.external_id,
        unmanaged=row.unmanaged,
        model_definition_size=UNSET if row.model_definition_size is None else row.model_definition_size,
    )


def _conditions(query: GetExperimentsQuery) -> Sequence[ColumnElement[bool]]:
    conditions = [
        *matching_text(name=query.name, description=query.description, labels=()),
        *in_states(query.states),
        *_in_range(query),
    ]
    if query.archived is not UNSET:
        conditions.append(experiments.c.archived == query.archived)
        if not query.archived and not query.project_id:
            conditions += [~projects.c.archived, ~workspaces.c.archived]
    if query.project_id:
        conditions.append(experiments.c.project_id == query.project_id)
    return conditions


async def _of_owners(connection: AsyncConnection, query: GetExperimentsQuery) -> list[ColumnElement[bool]]:
    """Conditions on who owns them, by ids: of a name the database would not know how many experiments are theirs."""
    wanted: list[Sequence[int]] = [query.user_ids] if query.user_ids else []
    if query.users:
        wanted.append(list(await connection.scalars(select(users.c.id).where(any_of(users.c.username, query.users)))))
    # The experiments of one owner are in an index in the order of ids.
    return [
        experiments.c.owner_id == owners[0] if len(owners) == 1 else any_of(experiments.c.owner_id, owners)
        for owners in wanted
    ]


def matching_text(*, name: str, description: str, labels: Sequence[str]) -> list[ColumnElement[bool]]:
    """Conditions on the texts in the configuration: parts of name and description in any case, and all labels."""
    conditions: list[ColumnElement[bool]] = []
    if name:
        conditions.append(experiments.c.config["name"].astext.icontains(name, autoescape=True))
    conditions += having_trigrams(trigrams_of_experiment_name, name)
    if description:
        conditions.append(experiments.c.config["description"].astext.icontains(description, autoescape=True))
    if labels:
        conditions.append(experiment_labels.contains(list(labels)))
    return conditions


def in_states(states: Sequence[ExperimentState]) -> list[ColumnElement[bool]]:
    """Conditions on the state in the row, not the displayed one; none for no states."""
    named = {state.value.removeprefix("STATE_") for state in states if state is not ExperimentState.UNSPECIFIED}
    return [experiments.c.state.in_(sorted(named))] if named else []


def _in_range(query: GetExperimentsQuery) -> list[ColumnElement[bool]]:
    wanted, column = query.experiment_id_filter, experiments.c.id
    conditions: list[ColumnElement[bool]] = []
    if wanted.lt is not UNSET:
        conditions.append(column < wanted.lt)
    if wanted.lte is not UNSET:
        conditions.append(column <= wanted.lte)
    if wanted.gt is not UNSET:
        conditions.append(column > wanted.gt)
    if wanted.gte is not UNSET:
        conditions.append(column >= wanted.gte)
    if wanted.incl:
        conditions.append(any_of(column, wanted.incl))
    if wanted.not_in:
        conditions.append(~any_of(column, wanted.not_in))
    return conditions


def _order(query: GetExperimentsQuery) -> list[ColumnElement[Any]]:
    column, direction = _SORT_COLUMNS[query.sort_by], descending if query.order_by is OrderBy.DESC else ascending
    return [direction(each) for each in dict.fromkeys((column, experiments.c.id))]


async def check_project_exists(connection: AsyncConnection | DriverConnection, project_id: int) -> None:
    """Raises NotFound unless there is such a project."""
    if not await _PROJECT.records(connection, id=project_id):
        raise NotFound("project", project_id)


_EXPERIMENT: Final = PreparedQuery(select(experiments.c.id).where(experiments.c.id == given("id", experiments.c.id)))
_PROJECT: Final = PreparedQuery(select(projects.c.id).where(projects.c.id == given("id", projects.c.id)))
