"""Locks the row of an experiment, and announces its change.

Locks are taken in one order everywhere: experiment, trial, allocation, project; several of a kind by ascending id.
"""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import text_in
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.tables.workspaces import projects
from libs.errors import NotFound
from libs.events.changes import ExperimentChanged
from libs.states.experiment import LIVE, ExperimentState
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights

What = Literal["state", "edited", "moved"]


async def lock_experiment(connection: AsyncConnection, experiment_id: int) -> Row[Any]:
    """Its row, locked until the transaction ends, without keys. Raises NotFound."""
    columns = [column for column in experiments.c if not column.name.startswith("ssh_")]
    locked = select(*columns).where(experiments.c.id == experiment_id).with_for_update()
    row = (await connection.execute(locked)).one_or_none()
    if row is None:
        raise NotFound("experiment", experiment_id)
    return row


async def require_right(connection: AsyncConnection, rights: UserRights, action: Action, row: Row[Any]) -> None:
    """Raises PermissionDenied unless the caller may do this to the locked experiment."""
    workspace = select(projects.c.workspace_id).where(projects.c.id == row.project_id)
    workspace_id = await connection.scalar(workspace) if rights.by_roles else None
    rights.require(action, workspace_id=workspace_id, owner_ids=(row.owner_id,))


def is_live(row: Row[Any]) -> bool:
    """Whether the scheduler drives the experiment: it is managed, and has not ended."""
    return not row.unmanaged and row.state in LIVE


def check_live(row: Row[Any]) -> None:
    """Raise NotFound unless the experiment is live."""
    if not is_live(row):
        raise NotFound("experiment", row.id)


async def change(connection: AsyncConnection, row: Row[Any], what: What, **values: Any) -> None:
    """Set columns of a locked experiment and tell of it; ``config`` and ``state`` in the event are the new ones."""
    if values:
        await connection.execute(update(experiments).where(experiments.c.id == row.id).values(**values))
    config = values.get("config", row.config)
    await announce(
        connection,
        ExperimentChanged(
            experiment_id=row.id,
            what=what,
            state=ExperimentState(values.get("state", row.state)).value,
            name=text_in(config, "name"),
            job_id=row.job_id,
            project_id=values.get("project_id", row.project_id),
            progress=values.get("progress", row.progress),
        ),
    )
