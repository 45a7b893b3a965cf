"""Moves runs to another project: each with all others of its experiment, since an experiment is in one project.

Source: docs/reference/experiments.md 13.6 (move).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.trials import trials
from libs.errors import FailedPrecondition, ResoluteError, Unavailable
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.experiments.move import move
from services.api.actions.experiments.project import load_project
from services.api.actions.trials.run_actions import attempt, wanted_runs
from services.api.wire.trials.run_actions import MoveRunsRequest, RunActionResult


async def move_runs(db: Database, request: MoveRunsRequest, rights: UserRights) -> list[RunActionResult]:
    """Move the experiments of the runs that the request means, each in a transaction; one result per run that it
    means or that came along.

    Raises NotFound for an unknown project, FailedPrecondition when one is archived, InvalidRequest, Unavailable.
    """
    source, destination = request.source_project_id, request.destination_project_id
    async with db.read() as connection:
        if (await load_project(connection, source)).archived:
            raise FailedPrecondition(f"project ({source}) is archived and cannot have runs moved from it")
        target = await load_project(connection, destination)
    if target.archived:
        raise FailedPrecondition(f"project ({destination}) is archived and cannot add new runs")
    if target.state:
        raise FailedPrecondition(f"project ({destination}) is being deleted and cannot add new runs")
    right = Action.MOVE_EXPERIMENT
    wanted = await wanted_runs(db, request.run_ids, request.filter, source, rights=rights, right=right)
    if source == destination:
        return []
    moved: set[int] = set()
    errors: dict[int, str] = {}

    async def move_experiment(connection: AsyncConnection, run: Row[Any]) -> None:
        came_along = await _move_with_all(connection, run, destination, rights, skip=request.skip_multitrial)
        moved.update(came_along)

    for run_id in wanted:
        if run_id not in moved:
            errors[run_id] = await attempt(db, source, run_id, move_experiment, rights=rights)
    return [RunActionResult(id=run_id, error="" if run_id in moved else error) for run_id, error in errors.items()] + [
        RunActionResult(id=run_id) for run_id in sorted(moved - errors.keys())
    ]


async def _move_with_all(
    connection: AsyncConnection, run: Row[Any], destination: int, rights: UserRights, *, skip: bool
) -> list[int]:
    """The ids of all runs of the experiment, which is in the other project now. Raises FailedPrecondition."""
    if run.archived or run.experiment_archived or run.project_archived:
        raise FailedPrecondition("Run is archived.")
    if skip and run.is_multitrial:
        raise FailedPrecondition(f"Skipping run '{run.id}' (part of multi-trial).")
    try:
        await move(connection, run.experiment_id, destination, rights)
    except Unavailable:
        raise
    except ResoluteError as error:
        raise FailedPrecondition(f"Failed to move associated experiment: {error}") from error
    return list(await connection.scalars(select(trials.c.id).where(trials.c.experiment_id == run.experiment_id)))
