"""Moves an experiment, with all its trials, from one project to another.

Addresses that trials had there go on to lead to them. Source: docs/reference/experiments.md 6 (move);
docs/reference/platform.md 8 (local ids).
"""

from __future__ import annotations

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import jobs, tasks
from libs.db.tables.trials import former_addresses, trials
from libs.db.tables.workspaces import project_keys, projects
from libs.errors import FailedPrecondition
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.experiment_lock import change, lock_experiment, require_right
from services.api.actions.experiments.project import check_may_grow, load_project, lock_project


async def move(
    connection: AsyncConnection, experiment_id: int, destination_project_id: int, rights: UserRights
) -> None:
    """Move it; its trials get new local ids, in the order of their ids. Already being there is fine.

    Raises NotFound, PermissionDenied, and FailedPrecondition when something on the way is archived.
    """
    row = await lock_experiment(connection, experiment_id)
    await require_right(connection, rights, Action.MOVE_EXPERIMENT, row)
    if row.archived:
        raise FailedPrecondition(f"experiment ({experiment_id}) is archived and cannot be moved")
    await check_may_leave(connection, row.project_id)
    destination = await load_project(connection, destination_project_id)
    check_may_grow(destination)
    if destination.project_id == row.project_id:
        return
    await lock_project(connection, destination)
    destination = await load_project(connection, destination_project_id)  # from here on it stays in its workspace
    await _keep_addresses(connection, experiment_id)
    await _renumber_trials(connection, experiment_id, destination.project_id)
    await _take_along(connection, experiment_id, row.job_id, destination.workspace_id)
    await change(connection, row, "moved", project_id=destination.project_id)


async def _take_along(connection: AsyncConnection, experiment_id: int, job_id: str, workspace_id: int) -> None:
    """Its tasks, also those with jobs of their own, belong to the other workspace too; what runs stays where it is."""
    mine = tasks.c.experiment_id == experiment_id
    of_tasks = select(tasks.c.job_id).where(mine)
    await connection.execute(update(tasks).where(mine).values(workspace_id=workspace_id))
    await connection.execute(
        update(jobs).where((jobs.c.job_id == job_id) | jobs.c.job_id.in_(of_tasks)).values(workspace_id=workspace_id)
    )


async def check_may_leave(connection: AsyncConnection, project_id: int) -> None:
    """Raise FailedPrecondition when experiments may not be taken out of the project."""
    if (await load_project(connection, project_id)).archived:
        raise FailedPrecondition(f"project ({project_id}) is archived and cannot have experiments moved from it")


async def _keep_addresses(connection: AsyncConnection, experiment_id: int) -> None:
    """The addresses KEY-n of its trials lead to them for ever, with all keys that their project has had."""
    had = (
        select(project_keys.c.key, trials.c.local_id, trials.c.id)
        .join(project_keys, project_keys.c.project_id == trials.c.project_id)
        # Trials of old imports may have no number.
        .where(trials.c.experiment_id == experiment_id, trials.c.local_id > 0)
    )
    await connection.execute(insert(former_addresses).from_select(["key", "local_id", "trial_id"], had))


async def _renumber_trials(connection: AsyncConnection, experiment_id: int, project_id: int) -> None:
    """Give the trials the next local ids of the project, whose row is locked."""
    used = await connection.scalar(select(projects.c.max_local_id).where(projects.c.id == project_id)) or 0
    position = func.row_number().over(order_by=trials.c.id)
    numbered = (
        select(trials.c.id, (used + position).label("local_id"))
        .where(trials.c.experiment_id == experiment_id)
        .subquery()
    )
    moved = await connection.execute(
        update(trials).where(trials.c.id == numbered.c.id).values(project_id=project_id, local_id=numbered.c.local_id)
    )
    await connection.execute(
        update(projects).where(projects.c.id == project_id).values(max_local_id=used + moved.rowcount)
    )
