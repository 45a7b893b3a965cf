"""Does the same thing to many experiments: to each by itself, so that one that cannot be changed holds up no other.

Source: docs/reference/experiments.md 6.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.db.tables.workspaces import projects
from libs.db.transactions import in_transaction
from libs.errors import NotFound, ResoluteError, Unavailable
from libs.states.experiment import DELETABLE, TERMINAL, ExperimentState
from services.api.access.rights import actions as rights_actions
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import in_states, matching_text
from services.api.wire.experiments.actions import ActionResult, BulkExperimentFilters, BulkRequest

ANY_PROJECT: Final = -1

_NOT_TERMINAL: Final = frozenset(ExperimentState) - DELETABLE - {ExperimentState.DELETING}
DEFAULT_STATES: Final[dict[str, frozenset[ExperimentState]]] = {
    "activate": frozenset({ExperimentState.PAUSED}),
    "pause": frozenset({ExperimentState.ACTIVE}),
    "cancel": _NOT_TERMINAL,
    "kill": _NOT_TERMINAL,
    "archive": TERMINAL,
    "unarchive": TERMINAL,
    "delete": DELETABLE,
    "retain_logs": TERMINAL,
}
"""Which experiments an action with filters is for, when the filters do not say; the others are for all."""

Action = Callable[[AsyncConnection, int], Awaitable[None]]


async def for_each(
    db: Database,
    request: BulkRequest,
    action: Action,
    *,
    verb: str,
    project_id: int,
    rights: UserRights,
    right: rights_actions.Action,
) -> list[ActionResult]:
    """Do ``action`` to every experiment that the request means, in a transaction each; one result per experiment.

    verb        a key of DEFAULT_STATES, or the name of an action without an entry there
    project_id  experiments of other projects are not found; -1 is any project
    right       what ``action`` is: the result of one with which the caller may not do it says so, one that the caller
                may not know of is not there, and filters find neither of them
    Raises Unavailable, since there is no sense in going on.
    """
    results: list[ActionResult] = []
    async with db.read() as connection:
        if request.filters is not UNSET:
            mine = rights.where_project(right, experiments.c.project_id)
            wanted: Sequence[int] = await select_ids(connection, request.filters, verb, project_id, mine)
        else:
            wanted = list(dict.fromkeys(request.experiment_ids))
        present = await _present(connection, wanted, project_id, rights)
    for experiment_id in wanted:
        row = present.get(experiment_id)
        if row is None:
            error = str(NotFound("experiment", experiment_id))
        elif not rights.may(right, workspace_id=row.workspace_id, owner_ids=(row.owner_id,)):
            error = rights.refusal(right)
        else:
            error = await _attempt(db, action, experiment_id)
        results.append(ActionResult(id=experiment_id, error=error))
    return results


async def select_ids(
    connection: AsyncConnection,
    filters: BulkExperimentFilters,
    verb: str,
    project_id: int,
    *also: ColumnElement[bool],
) -> list[int]:
    """Ids of the experiments that fulfil the filters and further conditions, ascending."""
    conditions: list[ColumnElement[bool]] = [
        *also,
        *matching_text(name=filters.name, description=filters.description, labels=filters.labels),
        *in_states(filters.states),
    ]
    if not filters.states and verb in DEFAULT_STATES:
        conditions.append(experiments.c.state.in_(sorted(DEFAULT_STATES[verb])))
    if filters.archived is not UNSET:
        conditions.append(experiments.c.archived == filters.archived)
    elif verb in ("archive", "unarchive"):
        conditions.append(experiments.c.archived == (verb == "unarchive"))
    if filters.user_ids:
        conditions.append(any_of(experiments.c.owner_id, filters.user_ids))
    if filters.excluded_experiment_ids:
        conditions.append(~any_of(experiments.c.id, filters.excluded_experiment_ids))
    for project in (project_id, filters.project_id):
        if project > 0:
            conditions.append(experiments.c.project_id == project)
    return list(await connection.scalars(select(experiments.c.id).where(*conditions).order_by(experiments.c.id)))


async def _present(
    connection: AsyncConnection, ids: Sequence[int], project_id: int, rights: UserRights
) -> dict[int, Row[int, int, int]]:
    """Id -> its owner and workspace, of those that are in the project and that the caller may see."""
    query = (
        select(experiments.c.id, experiments.c.owner_id, projects.c.workspace_id)
        .join(projects, projects.c.id == experiments.c.project_id)
        .where(
            any_of(experiments.c.id, ids),
            rights.where(rights_actions.Action.VIEW_EXPERIMENT, projects.c.workspace_id),
        )
    )
    if project_id != ANY_PROJECT:
        query = query.where(experiments.c.project_id == project_id)
    return {row.id: row for row in await connection.execute(query)}


async def _attempt(db: Database, action: Action, experiment_id: int) -> str:
    """What went wrong, or ""."""
    try:
        await in_transaction(db, lambda connection: action(connection, experiment_id))
    except Unavailable:
        raise
    except ResoluteError as error:
        return str(error)
    return ""
