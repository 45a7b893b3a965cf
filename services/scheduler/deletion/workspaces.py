"""Deletes projects and workspaces: their contents first, each part in its own time, then the row.

Like all else here it is done by looking again: each look asks for what is still missing. Where an experiment cannot be
deleted, ``deletion.py`` marks what contains it, and looking ends. Source: docs/reference/platform.md 7 and 8 (delete
sequence).
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg
import structlog
from sqlalchemy import Select, delete, select, text, update
from sqlalchemy.exc import IntegrityError

from libs.db.any_of import any_of
from libs.db.engine import Connection, Database
from libs.db.failures import driver_error
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.db.tables.workspaces import projects, workspaces
from libs.db.transactions import in_transaction
from libs.events.changes import WorkspaceChanged
from libs.states.experiment import DELETABLE, ExperimentState, Trigger, step
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.transactions.locked_experiment import experiment_changed
from services.scheduler.transactions.rows import ExperimentRow, Locked, lock_one

log = structlog.get_logger()

REQUEUE_AFTER_S: Final = 1.0
_ON_THEIR_WAY: Final = (ExperimentState.DELETING, ExperimentState.STOPPING_KILLED, ExperimentState.STOPPING_ERROR)


class WorkspaceDeletion:
    def __init__(self, *, db: Database, allocations: AllocationReconciler) -> None:
        self._db = db
        self._allocations = allocations

    async def advance_project(self, project_id: int) -> float | None:
        """Carry the deletion of a project as far as it can go; returns when to look again, None when it is done."""
        async with self._db.read() as connection:
            query = select(projects.c.state, projects.c.workspace_id).where(projects.c.id == project_id)
            found = (await connection.execute(query)).first()
            inside = select(experiments.c.id, experiments.c.state).where(experiments.c.project_id == project_id)
            left = list(await connection.execute(inside.order_by(experiments.c.id)))
        if found is None or found.state != "DELETING":
            return None
        for experiment in (row.id for row in left if row.state not in _ON_THEIR_WAY):
            await in_transaction(self._db, lambda connection, ident=experiment: _request_deletion(connection, ident))  # type: ignore[misc]
        if left:
            return REQUEUE_AFTER_S
        await self._delete("project", project_id, found.workspace_id)
        return None

    async def advance_workspace(self, workspace_id: int) -> float | None:
        """Carry the deletion of a workspace as far as it can go; returns when to look again, None when it is done."""
        async with self._db.transaction() as connection:
            query = select(workspaces.c.state).where(workspaces.c.id == workspace_id)
            state = (await connection.execute(query)).scalar()
            if state != "DELETING":
                return None
            mine = projects.c.workspace_id == workspace_id
            doomed = update(projects).where(mine & (projects.c.state != "DELETING"))
            await connection.execute(doomed.values(state="DELETING", error_message=""))
            left = list((await connection.execute(select(projects.c.id).where(mine))).scalars())
            running = list(await connection.execute(_live_allocations(workspace_id)))
        for row in running:
            # What belongs to an experiment ends with it, or goes on if it has moved away: its task is waited for.
            if row.experiment_id is None:
                await self._allocations.kill(row.allocation_id, reason="its workspace is being deleted")
        for project in left:
            await self.advance_project(project)
        if running or left:
            return REQUEUE_AFTER_S
        await self._delete("workspace", workspace_id, workspace_id)
        return None

    async def _delete(self, noun: str, ident: int, workspace_id: int) -> None:
        """Delete the row; something that still refers to it makes the deletion fail."""
        try:
            await in_transaction(self._db, lambda connection: _delete_row(connection, noun, ident, workspace_id))
        except (IntegrityError, asyncpg.IntegrityConstraintViolationError) as error:
            cause = driver_error(error)
            log.warning("deletion.failed", noun=noun, ident=ident, error=str(cause))
            reason = f"something still refers to {noun} {ident}: {cause}"
            await in_transaction(self._db, lambda connection: _mark_failed(connection, noun, ident, reason))


async def _request_deletion(connection: Connection, experiment_id: int) -> None:
    """Have an experiment end, and delete it when it has."""
    locked: Locked[ExperimentRow] = Locked()
    row = await lock_one(connection, ExperimentRow, experiment_id, locked)
    if row is None or row.state == ExperimentState.DELETING:
        return
    state = ExperimentState(row.state)
    if row.unmanaged and state not in DELETABLE:
        wanted: ExperimentState | None = ExperimentState.DELETING  # nothing of it runs here
    else:
        wanted = step(state, Trigger.DELETE if state in DELETABLE else Trigger.KILL)
    if wanted is None or wanted == state:
        return
    row.state = wanted
    if wanted == ExperimentState.DELETING:
        row.deletion_tasks = None
    await locked.write(connection)
    await announce(connection, experiment_changed(row, "state"))


def _live_allocations(workspace_id: int) -> Select[Any]:
    return (
        select(allocations.c.allocation_id, tasks.c.experiment_id)
        .join(tasks, tasks.c.task_id == allocations.c.task_id)
        .where(tasks.c.workspace_id == workspace_id, allocations.c.released_at.is_(None))
        .order_by(allocations.c.allocation_id)
    )


async def _delete_row(connection: Connection, noun: str, ident: int, workspace_id: int) -> None:
    table = projects if noun == "project" else workspaces
    if noun == "workspace":
        inside = delete(tasks).where(tasks.c.workspace_id == ident, tasks.c.experiment_id.is_(None))
        own_jobs = (await connection.execute(inside.returning(tasks.c.job_id))).scalars().all()
        await connection.execute(delete(jobs).where(any_of(jobs.c.job_id, filter(None, own_jobs))))
    gone = delete(table).where(table.c.id == ident, table.c.state == "DELETING").returning(table.c.name)
    name = await connection.scalar(gone)
    if name is not None:
        log.info(f"{noun}.deleted", ident=ident)
        await announce(connection, _changed(noun, ident, workspace_id, gone=True, name=name))


async def _mark_failed(connection: Connection, noun: str, ident: int, reason: str) -> None:
    table = projects if noun == "project" else workspaces
    mine = (table.c.id == ident) & (table.c.state == "DELETING")
    await connection.execute(update(table).where(mine).values(state="DELETE_FAILED", error_message=reason))
    if noun == "project":
        above = text("""
            UPDATE workspaces SET state = 'DELETE_FAILED', error_message = :reason
            WHERE state = 'DELETING' AND id = (SELECT workspace_id FROM projects WHERE id = :ident)
        """)
        await connection.execute(above, {"reason": reason, "ident": ident})
    await announce(connection, _changed(noun, ident, ident, gone=False))


def _changed(noun: str, ident: int, workspace_id: int, *, gone: bool, name: str = "") -> WorkspaceChanged:
    if noun == "project":
        return WorkspaceChanged(workspace_id=workspace_id, what="project", project_id=ident, name=name)
    return WorkspaceChanged(workspace_id=ident, what="deleted" if gone else "changed", name=name)
