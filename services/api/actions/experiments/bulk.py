"""Does the same thing to many experiments: to each by itself, so that one that cannot be changed holds up no other.

Source: docs/reference/experiments.md 6.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.db.transactions import in_transaction
from libs.errors import NotFound, ResoluteError, Unavailable
from libs.states.experiment import DELETABLE, TERMINAL, ExperimentState
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
    db: Database, request: BulkRequest, action: Action, *, verb: str, project_id: int
) -> list[ActionResult]:
    """Do ``action`` to every experiment that the request means, in a transaction each; one result per experiment.

    verb        a key of DEFAULT_STATES, or the name of an action without an entry there
    project_id  experiments of other projects are not found; -1 is any project
    Raises Unavailable, since there is no sense in going on.
    """
    results: list[ActionResult] = []
    async with db.read() as connection:
        if request.filters is not UNSET:
            wanted: Sequence[int] = await select_ids(connection, request.filters, verb, project_id)
            present = set(wanted)
        else:
            wanted = list(dict.fromkeys(request.experiment_ids))
            present = await _present(connection, wanted, project_id)
    for experiment_id in wanted:
        error = "" if experiment_id in present else str(NotFound("experiment", experiment_id))
        if not error:
            error = await _attempt(db, action, experiment_id)
        results.append(ActionResult(id=experiment_id, error=error))
    return results


async def select_ids(
    connection: AsyncConnection, filters: BulkExperimentFilters, verb: str, project_id: int
) -> list[int]:
    """Ids of the experiments that fulfil the filters, ascending."""
    conditions: list[ColumnElement[bool]] = [
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


async def _present(connection: AsyncConnection, ids: Sequence[int], project_id: int) -> set[int]:
    query = select(experiments.c.id).where(any_of(experiments.c.id, ids))
    if project_id != ANY_PROJECT:
        query = query.where(experiments.c.project_id == project_id)
    return set(await connection.scalars(query))


async def _attempt(db: Database, action: Action, experiment_id: int) -> str:
    """What went wrong, or ""."""
    try:
        await in_transaction(db, lambda connection: action(connection, experiment_id))
    except Unavailable:
        raise
    except ResoluteError as error:
        return str(error)
    return ""
