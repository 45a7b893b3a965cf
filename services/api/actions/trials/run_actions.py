"""Does the same thing to many runs: to each by itself, so that one that cannot be changed holds up no other.

Most of what can be done to a run is done to its experiment. Source: docs/reference/experiments.md 13.6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sqlalchemy import Row, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects, workspaces
from libs.db.transactions import in_transaction
from libs.errors import FailedPrecondition, InvalidRequest, ResoluteError, Unavailable
from libs.states.trial import TERMINAL
from services.api.access.rights import actions as rights_actions
from services.api.access.rights.rights import UserRights
from services.api.actions.experiment_lock import change, lock_experiment
from services.api.actions.experiments import states
from services.api.actions.trials.trials import kill_trial
from services.api.queries.search.fixed_columns import is_multitrial
from services.api.queries.search.runs.searches import select_run_ids
from services.api.wire.trials.run_actions import RunActionResult, RunsRequest

Action = Callable[[AsyncConnection, Row[Any]], Awaitable[bool | None]]
"""Returns True where it has done a part of it, and the rest is for another transaction."""


async def for_each(
    db: Database, request: RunsRequest, action: Action, *, rights: UserRights, right: rights_actions.Action
) -> list[RunActionResult]:
    """Do ``action`` to every run that the request means, in transactions of its own; one result per run.

    right  what ``action`` is: the result of a run with which the caller may not do it says so, one that the caller may
           not know of is not there, and a filter finds neither of them
    Raises InvalidRequest, and Unavailable, since there is no sense in going on.
    """
    project = request.project_id

    async def permitted(connection: AsyncConnection, run: Row[Any]) -> bool | None:
        rights.require(right, workspace_id=run.workspace_id, owner_ids=(run.owner_id,))
        return await action(connection, run)

    wanted = await wanted_runs(db, request.run_ids, request.filter, project, rights=rights, right=right)
    return [
        RunActionResult(id=run_id, error=await attempt(db, project, run_id, permitted, rights=rights))
        for run_id in wanted
    ]


async def wanted_runs(
    db: Database,
    run_ids: Sequence[int],
    filter_text: str,
    project_id: int,
    *,
    rights: UserRights,
    right: rights_actions.Action,
) -> list[int]:
    """The runs that a request names, each once, or those that its filter finds and with which the caller may do this.

    Raises InvalidRequest.
    """
    if not filter_text:
        return list(dict.fromkeys(run_ids))
    if run_ids:
        raise InvalidRequest("if filter is provided run id list must be empty")
    async with db.read() as connection:
        return await select_run_ids(connection, filter_text, project_id, rights=rights, right=right)


async def kill(connection: AsyncConnection, run: Row[Any]) -> None:
    """End it now; one that has ended stays as it is."""
    if run.state not in TERMINAL:
        try:
            await kill_trial(connection, run.id)
        except Unavailable:
            raise
        except ResoluteError as error:
            raise FailedPrecondition(f"Failed to kill run: {error}") from error


async def archive(connection: AsyncConnection, run: Row[Any]) -> None:
    """Put it out of sight; one that is, stays so. Raises FailedPrecondition."""
    if run.experiment_archived:
        raise FailedPrecondition(f"Run is part of archived Search (id: '{run.experiment_id}').")
    if run.state not in TERMINAL:
        raise FailedPrecondition("Run is not in terminal state.")
    await _set_archived(connection, run, archived=True)


async def unarchive(connection: AsyncConnection, run: Row[Any]) -> None:
    """Bring it back into sight; one that is, stays so. Raises FailedPrecondition."""
    if run.experiment_archived:
        raise FailedPrecondition(f"Run is part of archived Search (id: '{run.experiment_id}').")
    await _set_archived(connection, run, archived=False)


async def pause(connection: AsyncConnection, run: Row[Any]) -> None:
    """Pause the experiment that consists of it. Raises FailedPrecondition."""
    await _of_experiment(connection, run, states.pause, "pause")


async def resume(connection: AsyncConnection, run: Row[Any]) -> None:
    """Activate the experiment that consists of it. Raises FailedPrecondition."""
    await _of_experiment(connection, run, states.activate, "resume")


async def _set_archived(connection: AsyncConnection, run: Row[Any], *, archived: bool) -> None:
    await connection.execute(update(trials).where(trials.c.id == run.id).values(archived=archived))
    await change(connection, await lock_experiment(connection, run.experiment_id), "edited")


async def _of_experiment(
    connection: AsyncConnection, run: Row[Any], act: Callable[[AsyncConnection, int], Awaitable[None]], verb: str
) -> None:
    if run.archived or run.experiment_archived or run.project_archived:
        raise FailedPrecondition("Run is archived.")
    if run.is_multitrial:
        raise FailedPrecondition(f"Cannot pause/unpause run '{run.id}' (part of multi-trial).")
    try:
        await act(connection, run.experiment_id)
    except Unavailable:
        raise
    except ResoluteError as error:
        raise FailedPrecondition(f"Failed to {verb} associated experiment: {error}") from error


async def attempt(db: Database, project_id: int, run_id: int, action: Action, *, rights: UserRights) -> str:
    """What went wrong with the action on that run of that project, or "". Raises Unavailable."""

    async def lock_and_act(connection: AsyncConnection) -> str | None:
        run = await _lock_run(connection, run_id, project_id)
        if run is None or not rights.sees(rights_actions.Action.VIEW_EXPERIMENT, workspace_id=run.workspace_id):
            place = f" in project with id '{project_id}'" if project_id else ""
            return f"Run with id '{run_id}' not found{place}"
        return None if await action(connection, run) else ""

    try:
        while (error := await in_transaction(db, lock_and_act)) is None:
            pass
        return error
    except Unavailable:
        raise
    except ResoluteError as error:
        return str(error)


async def _lock_run(connection: AsyncConnection, run_id: int, project_id: int) -> Row[Any] | None:
    """The run of that project, or of any for 0, with its experiment locked; None when there is none."""
    found = select(trials.c.experiment_id).where(trials.c.id == run_id)
    experiment_id = await connection.scalar(found)
    if experiment_id is None:
        return None
    await lock_experiment(connection, experiment_id)
    query = (
        select(
            trials.c.id,
            trials.c.experiment_id,
            experiments.c.owner_id,
            trials.c.state,
            trials.c.archived,
            experiments.c.archived.label("experiment_archived"),
            projects.c.workspace_id,
            or_(projects.c.archived, workspaces.c.archived).label("project_archived"),
            is_multitrial.label("is_multitrial"),
        )
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .join(projects, projects.c.id == trials.c.project_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .where(trials.c.id == run_id, experiments.c.state != "DELETING")
        .with_for_update(of=trials)
    )
    if project_id:
        query = query.where(trials.c.project_id == project_id)
    return (await connection.execute(query)).one_or_none()
