"""Creates, changes and deletes projects (docs/reference/platform.md 8)."""

from __future__ import annotations

import random
import re
import string
from datetime import datetime
from typing import Any, Final

from msgspec import UnsetType
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs, tasks
from libs.db.tables.workspaces import project_keys, projects
from libs.errors import AlreadyExists, FailedPrecondition, InvalidRequest
from libs.events.changes import WorkspaceChanged
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.workspaces.rights import require_on_project
from services.api.queries.workspaces.projects import project_row, stored_notes
from services.api.queries.workspaces.workspaces import Row, locked_workspace
from services.api.wire.workspaces.projects import Note, PatchProject, PostProjectRequest

KEY_PATTERN: Final = re.compile(r"[A-Za-z0-9]{1,5}")
LONGEST_NAME: Final = 256
"""In characters; the index of the table could not hold names of any length."""
LONGEST_KEY: Final = 5
KEY_STEM: Final = 3
_TRIES: Final = 20
_LETTERS: Final = string.ascii_uppercase + string.digits


async def create_project(
    db: Database, workspace_id: int, request: PostProjectRequest, *, user_id: int, now: datetime
) -> Row:
    """Raises NotFound, FailedPrecondition, InvalidRequest, AlreadyExists."""
    _check_name(request.name)
    async with db.transaction() as connection:
        workspace = await locked_workspace(connection, workspace_id)
        _check_takes_projects(workspace)
        await _check_name_free(connection, workspace_id, request.name)
        key = await _new_key(connection, request.name, request.key)
        project_id = (
            await connection.execute(
                insert(projects)
                .values(
                    workspace_id=workspace_id,
                    name=request.name,
                    description=request.description,
                    key=key,
                    owner_id=user_id,
                    created_at=now,
                )
                .returning(projects.c.id)
            )
        ).scalar_one()
        await _keep_key(connection, key, project_id)
        await _announce(connection, workspace_id, project_id, request.name)
        return await project_row(connection, project_id)


async def patch_project(db: Database, project_id: int, patch: PatchProject, *, rights: UserRights) -> Row:
    """Raises NotFound, PermissionDenied, FailedPrecondition, InvalidRequest, AlreadyExists."""
    async with db.transaction() as connection:
        before = await _changeable(connection, project_id, rights, Action.EDIT_PROJECT)
        values: dict[str, Any] = {}
        if isinstance(patch.name, str) and patch.name != before["name"]:
            _check_name(patch.name)
            await _check_name_free(connection, before["workspace_id"], patch.name)
            values["name"] = patch.name
        if isinstance(patch.description, str):
            values["description"] = patch.description
        if isinstance(patch.key, str) and patch.key.upper() != before["key"]:
            values["key"] = await _free_key(connection, patch.key, project_id)
            await _keep_key(connection, values["key"], project_id)
        if values:
            await connection.execute(update(projects).where(projects.c.id == project_id).values(**values))
            await _announce(connection, before["workspace_id"], project_id, before["name"])
        return await project_row(connection, project_id)


async def archive_project(db: Database, project_id: int, *, archived: bool, rights: UserRights) -> None:
    async with db.transaction() as connection:
        before = await _locked(connection, project_id, rights, Action.EDIT_PROJECT)
        if before["immutable"]:
            raise FailedPrecondition(f"project ({project_id}) is immutable and cannot be archived")
        if before["workspace_archived"]:
            raise FailedPrecondition(
                "This project belongs to an archived workspace. To make changes, first unarchive the workspace."
            )
        await connection.execute(update(projects).where(projects.c.id == project_id).values(archived=archived))
        await _announce(connection, before["workspace_id"], project_id, before["name"])


async def move_project(db: Database, project_id: int, *, destination: int, rights: UserRights) -> None:
    """To another workspace, with its experiments."""
    async with db.transaction() as connection:
        # The workspace before the project, as in the deletion of a workspace with its projects.
        into = await locked_workspace(connection, destination)
        before = await _changeable(connection, project_id, rights, Action.MOVE_PROJECT)
        _check_takes_projects(into)
        await _check_name_free(connection, destination, before["name"])
        await connection.execute(update(projects).where(projects.c.id == project_id).values(workspace_id=destination))
        await _take_along(connection, project_id, destination)
        await _announce(connection, destination, project_id, before["name"])


async def _take_along(connection: AsyncConnection, project_id: int, workspace_id: int) -> None:
    """The tasks of its experiments belong to the other workspace as well; what runs stays where it is."""
    inside = select(experiments.c.id).where(experiments.c.project_id == project_id)
    moved = update(tasks).where(tasks.c.experiment_id.in_(inside)).values(workspace_id=workspace_id)
    of_tasks = select(tasks.c.job_id).where(tasks.c.experiment_id.in_(inside))
    of_experiments = select(experiments.c.job_id).where(experiments.c.project_id == project_id)
    mine = jobs.c.job_id.in_(of_tasks) | jobs.c.job_id.in_(of_experiments)
    await connection.execute(moved)
    await connection.execute(update(jobs).where(mine).values(workspace_id=workspace_id))


async def set_notes(db: Database, project_id: int, notes: list[Note], *, append: bool) -> list[Note]:
    """The notes afterwards: ``notes`` alone, or behind those that are there."""
    async with db.transaction() as connection:
        before = await project_row(connection, project_id, lock=True)
        kept = stored_notes(before["notes"]) if append else []
        after = [*kept, *notes]
        stored = [{"name": note.name, "contents": note.contents} for note in after]
        await connection.execute(update(projects).where(projects.c.id == project_id).values(notes=stored))
        return after


async def delete_project(db: Database, project_id: int, *, rights: UserRights) -> bool:
    """True when it is gone; False when its experiments go first, and the scheduler deletes it after them."""
    async with db.transaction() as connection:
        before = await _locked(connection, project_id, rights, Action.DELETE_PROJECT)
        if before["immutable"]:
            raise FailedPrecondition(f"project ({project_id}) is immutable and cannot be deleted")
        await _announce(connection, before["workspace_id"], project_id, before["name"])
        if not before["num_experiments"]:
            await connection.execute(delete(projects).where(projects.c.id == project_id))
            return True
        await connection.execute(
            update(projects).where(projects.c.id == project_id).values(state="DELETING", error_message="")
        )
        return False


def _check_takes_projects(workspace: Row) -> None:
    if workspace["archived"] or workspace["immutable"]:
        raise FailedPrecondition(f"workspace ({workspace['id']}) is immutable or archived and cannot add new projects")
    if workspace["state"]:
        raise FailedPrecondition(f"workspace ({workspace['id']}) is being deleted and cannot add new projects")


async def _locked(connection: AsyncConnection, project_id: int, rights: UserRights, action: Action) -> Row:
    """Raises NotFound, PermissionDenied."""
    row = await project_row(connection, project_id, lock=True)
    await require_on_project(connection, rights, action, row)
    return row


async def _changeable(connection: AsyncConnection, project_id: int, rights: UserRights, action: Action) -> Row:
    row = await _locked(connection, project_id, rights, action)
    if row["immutable"]:
        raise FailedPrecondition(f"project ({project_id}) is immutable and cannot be changed")
    if row["archived"] or row["workspace_archived"]:
        raise FailedPrecondition(f"project ({project_id}) is archived and cannot be changed")
    return row


async def _announce(connection: AsyncConnection, workspace_id: int, project_id: int, name: str) -> None:
    await announce(
        connection, WorkspaceChanged(workspace_id=workspace_id, what="project", project_id=project_id, name=name)
    )


def _check_name(name: str) -> None:
    if not name.strip():
        raise InvalidRequest("name: must be more than white space")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"name: must not be longer than {LONGEST_NAME} characters")


async def _check_name_free(connection: AsyncConnection, workspace_id: int, name: str) -> None:
    taken = select(projects.c.id).where(projects.c.workspace_id == workspace_id, projects.c.name == name)
    if (await connection.execute(taken)).first() is not None:
        raise AlreadyExists(f"project name {name} is already in use")


async def _new_key(connection: AsyncConnection, name: str, wanted: str | UnsetType) -> str:
    """The wanted key, or one made of the name. Keys are unique over all projects that ever were, and upper case."""
    if isinstance(wanted, str) and wanted:
        return await _free_key(connection, wanted)
    stem = "".join(char for char in name.upper() if char in _LETTERS)[:KEY_STEM]
    for _ in range(_TRIES):
        # A clash is harmless and found below, so no better randomness is needed.
        key = stem + "".join(random.choices(_LETTERS, k=LONGEST_KEY - len(stem)))  # noqa: S311
        if not await _is_taken(connection, key):
            return key
    raise AlreadyExists("no free project key was found; give one with the project")


async def _free_key(connection: AsyncConnection, wanted: str, project_id: int | None = None) -> str:
    """The key as it is stored. A project may take back one that it had itself."""
    if not KEY_PATTERN.fullmatch(wanted):
        raise InvalidRequest("key: must be 1 to 5 letters and digits")
    if await _is_taken(connection, wanted.upper(), project_id):
        raise AlreadyExists(f"project key {wanted.upper()} is already in use")
    return wanted.upper()


async def _is_taken(connection: AsyncConnection, key: str, project_id: int | None = None) -> bool:
    """Whether another project has the key, or had it: its old addresses still lead there
    (docs/reference/platform.md 8)."""
    known = (await connection.execute(select(project_keys.c.project_id).where(project_keys.c.key == key))).one_or_none()
    return known is not None and (known.project_id is None or known.project_id != project_id)


async def _keep_key(connection: AsyncConnection, key: str, project_id: int) -> None:
    """Remember for good that the project had this key."""
    row = upsert(project_keys).values(key=key, project_id=project_id)
    mine = row.on_conflict_do_update(
        index_elements=["key"], set_={"project_id": project_id}, where=project_keys.c.project_id == project_id
    )
    if not (await connection.execute(mine)).rowcount:
        raise AlreadyExists(f"project key {key} is already in use")  # since a moment ago
