"""Creates, changes and deletes workspaces (docs/reference/platform.md 7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import UNSET, UnsetType
from sqlalchemy import delete, exists, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import AuthzConfig, ClusterConfig
from libs.config.parts.storage import missing_parts, storage
from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.models import models
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.users import role_assignments
from libs.db.tables.workspaces import projects, workspace_pins, workspaces
from libs.errors import AlreadyExists, FailedPrecondition, InvalidRequest
from libs.events.changes import WorkspaceChanged
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.posix_identity import posix_columns
from services.api.actions.storage_addresses import check_storage_of_users
from services.api.actions.users.groups import personal_group
from services.api.actions.users.roles import announce_roles
from services.api.actions.workspaces.namespaces import (
    BindingPlan,
    carried_out,
    changeable_workspace,
    plan_bindings,
    write_bindings,
)
from services.api.actions.workspaces.rights import require_on_workspace
from services.api.app import App
from services.api.cluster_admin.namespace_requests import NamespaceRequest
from services.api.queries.workspaces.available_pools import bound_pools, unavailable_pools
from services.api.queries.workspaces.workspaces import Row, locked_workspace, unmasked, workspace_row
from services.api.wire.users.users import AgentUserGroup
from services.api.wire.workspaces.workspaces import PatchWorkspace, PostWorkspaceRequest

LONGEST_NAME: Final = 80
_STORAGE: Final = "checkpointStorageConfig"
_NEXT_ID: Final = text("SELECT nextval(pg_get_serial_sequence('workspaces', 'id'))")


async def create_workspace(
    app: App, request: PostWorkspaceRequest, namespace_requests: Sequence[NamespaceRequest], *, user_id: int
) -> tuple[Row, list[BindingPlan]]:
    """The new workspace, pinned for its creator, and what it is bound to.

    Raises InvalidRequest, AlreadyExists, and what ``namespaces.py`` raises; then there is no workspace.
    """
    name = _checked_name(request.name)
    values = _identity(request.agent_user_group)
    if isinstance(request.checkpoint_storage_config, dict) and request.checkpoint_storage_config:
        values["checkpoint_storage"] = _checked_storage(request.checkpoint_storage_config)
        await check_storage_of_users(app, values["checkpoint_storage"], path=_STORAGE)
    async with app.db.transaction() as connection:
        await _check_free(connection, name, own_id=0)
        # Its id is part of the name of its namespace, and the namespace is there first.
        workspace_id = (await connection.execute(_NEXT_ID)).scalar_one()
        plans = await plan_bindings(app, connection, namespace_requests, workspace_id=workspace_id, name=name)
    async with carried_out(app, plans), app.db.transaction() as connection:
        await _check_free(connection, name, own_id=0)
        values |= {"id": workspace_id, "name": name, "owner_id": user_id, "created_at": app.clock.now()}
        # What is new is bound to nothing, so that others have whatever is bound.
        bound = await bound_pools(connection)
        values |= _pools(request.default_compute_pool, request.default_aux_pool, app.cluster, unavailable=bound)
        new = upsert(workspaces).values(**values).on_conflict_do_nothing().returning(workspaces.c.id)
        if (await connection.execute(new)).scalar_one_or_none() is None:
            raise _taken()  # by somebody whose transaction was not yet to be seen
        await connection.execute(insert(workspace_pins).values(workspace_id=workspace_id, user_id=user_id))
        await write_bindings(app, connection, workspace_id, plans)
        await _give_role(connection, app.cluster.security.authz, workspace_id=workspace_id, user_id=user_id)
        await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="created", name=name))
        return await workspace_row(connection, workspace_id, user_id=user_id), plans


async def _give_role(connection: AsyncConnection, authz: AuthzConfig, *, workspace_id: int, user_id: int) -> None:
    """What who makes a workspace may do in it, where roles decide that."""
    if authz.type != "basic" and authz.workspace_creator_assign_role.enabled:
        group_id = await personal_group(connection, user_id)
        role_id = authz.workspace_creator_assign_role.role_id
        await connection.execute(
            insert(role_assignments).values(group_id=group_id, role_id=role_id, workspace_id=workspace_id)
        )
        await announce_roles(connection, [group_id])


async def patch_workspace(
    app: App,
    workspace_id: int,
    patch: PatchWorkspace,
    namespace_requests: Sequence[NamespaceRequest],
    *,
    rights: UserRights,
) -> tuple[Row, list[BindingPlan]]:
    """The workspace as it is now, and what it was bound to.

    Raises NotFound, PermissionDenied, FailedPrecondition for one that cannot change, InvalidRequest, AlreadyExists, and
    what ``namespaces.py`` raises; then nothing has changed.
    """
    if isinstance(patch.checkpoint_storage_config, dict):
        await check_storage_of_users(app, patch.checkpoint_storage_config, path=_STORAGE)
    plans: list[BindingPlan] = []
    if namespace_requests:
        async with app.db.transaction() as connection:
            row = await changeable_workspace(connection, workspace_id)
            _check_may_patch(rights, row, patch)
            _check_mutable(row)
            plans = await plan_bindings(
                app, connection, namespace_requests, workspace_id=workspace_id, name=row["name"], row=row
            )
    async with carried_out(app, plans), app.db.transaction() as connection:
        before = await locked_workspace(connection, workspace_id)
        _check_may_patch(rights, before, patch)
        _check_mutable(before)
        values: dict[str, Any] = {}
        if isinstance(patch.name, str) and patch.name != before["name"]:
            values["name"] = _checked_name(patch.name)
            await _check_free(connection, values["name"], own_id=workspace_id)
        compute = _first(patch.default_compute_pool, patch.default_compute_resource_pool)
        aux = _first(patch.default_aux_pool, patch.default_aux_resource_pool)
        unavailable = await unavailable_pools(connection, workspace_id)
        values |= {
            column: pool
            for column, pool in _pools(compute or "", aux or "", app.cluster, unavailable=unavailable).items()
            if (compute if column == "default_compute_pool" else aux) is not None
        }
        values |= _identity(patch.agent_user_group)
        if isinstance(patch.checkpoint_storage_config, dict):
            wanted = unmasked(patch.checkpoint_storage_config, before["checkpoint_storage"])
            values["checkpoint_storage"] = _checked_storage(wanted) if wanted else None
        if values:
            await connection.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(**values))
        if plans:
            await changeable_workspace(connection, workspace_id)
            await write_bindings(app, connection, workspace_id, plans)
        if values or plans:
            await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="changed", name=before["name"]))
        return await workspace_row(connection, workspace_id, user_id=rights.principal.user_id), plans


async def archive_workspace(db: Database, workspace_id: int, *, archived: bool, rights: UserRights) -> None:
    async with db.transaction() as connection:
        before = await locked_workspace(connection, workspace_id)
        require_on_workspace(rights, Action.ARCHIVE_WORKSPACE if archived else Action.UNARCHIVE_WORKSPACE, before)
        if before["immutable"]:
            raise FailedPrecondition(f"workspace ({workspace_id}) is immutable and cannot be archived")
        await connection.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(archived=archived))
        await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="changed", name=before["name"]))


async def pin_workspace(db: Database, workspace_id: int, *, user_id: int, pinned: bool) -> None:
    """For this user only. Pinning twice changes nothing."""
    async with db.transaction() as connection:
        await workspace_row(connection, workspace_id)
        if pinned:
            row = upsert(workspace_pins).values(workspace_id=workspace_id, user_id=user_id)
            await connection.execute(row.on_conflict_do_nothing())
        else:
            await connection.execute(
                delete(workspace_pins).where(
                    workspace_pins.c.workspace_id == workspace_id, workspace_pins.c.user_id == user_id
                )
            )


async def delete_workspace(db: Database, workspace_id: int, *, rights: UserRights) -> bool:
    """True when it is gone; False when its projects and tasks go first, and the scheduler deletes it after them.

    A namespace that was made for it goes when it is gone; the scheduler sees to that as well.
    """
    async with db.transaction() as connection:
        before = await locked_workspace(connection, workspace_id)
        require_on_workspace(rights, Action.DELETE_WORKSPACE, before)
        if before["immutable"]:
            raise FailedPrecondition(f"workspace ({workspace_id}) is immutable and cannot be deleted")
        if await connection.scalar(select(models.c.id).where(models.c.workspace_id == workspace_id).limit(1)):
            raise FailedPrecondition(f"workspace ({workspace_id}) contains models; move or delete models first")
        empty = not before["num_projects"] and not await _has_tasks(connection, workspace_id)
        await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="deleted", name=before["name"]))
        if empty:
            await connection.execute(delete(workspaces).where(workspaces.c.id == workspace_id))
            return True
        deleting = {"state": "DELETING", "error_message": ""}
        await connection.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(**deleting))
        await connection.execute(update(projects).where(projects.c.workspace_id == workspace_id).values(**deleting))
        return False


async def _has_tasks(connection: AsyncConnection, workspace_id: int) -> bool:
    """Whether there is any that goes with the workspace, or holds slots and is of an experiment that has left it."""
    lives = exists().where(allocations.c.task_id == tasks.c.task_id, allocations.c.released_at.is_(None))
    some = select(tasks.c.task_id).where(tasks.c.workspace_id == workspace_id, tasks.c.experiment_id.is_(None) | lives)
    return (await connection.execute(some.limit(1))).first() is not None


def _checked_storage(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration in normal form. Raises InvalidRequest unless it is complete by itself."""
    read = storage(config, _STORAGE)
    problems = read.problems or missing_parts(read.value, _STORAGE)
    if problems:
        raise InvalidRequest("; ".join(str(problem) for problem in problems))
    checked: dict[str, Any] = read.value
    return checked


def _first(*values: str | UnsetType) -> str | None:
    return next((value for value in values if isinstance(value, str)), None)


def _checked_name(name: str) -> str:
    if not name.strip():
        raise InvalidRequest("name: must be more than white space")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"name: must not be longer than {LONGEST_NAME} characters")
    return name


async def _check_free(connection: AsyncConnection, name: str, *, own_id: int) -> None:
    taken = select(workspaces.c.id).where(func.lower(workspaces.c.name) == name.lower(), workspaces.c.id != own_id)
    if (await connection.execute(taken)).first() is not None:
        raise _taken()


def _taken() -> AlreadyExists:
    return AlreadyExists("avoid names equal to other workspaces (case-insensitive)")


def _check_may_patch(rights: UserRights, workspace: Row, patch: PatchWorkspace) -> None:
    """Raises PermissionDenied, or before it FailedPrecondition for the workspace that is always there: that is the
    reason for everybody."""
    wanted = {Action.EDIT_WORKSPACE: patch.name, Action.SET_WORKSPACE_STORAGE: patch.checkpoint_storage_config}
    for action, value in wanted.items():
        if value is not UNSET:
            _check_not_immutable(workspace)
            require_on_workspace(rights, action, workspace)


def _check_not_immutable(workspace: Row) -> None:
    if workspace["immutable"]:
        raise FailedPrecondition(f"workspace ({workspace['id']}) is immutable and cannot be changed")


def _check_mutable(workspace: Row) -> None:
    _check_not_immutable(workspace)
    if workspace["archived"]:
        raise FailedPrecondition(f"workspace ({workspace['id']}) is archived and cannot be changed")


def _pools(compute: str, aux: str, cluster: ClusterConfig, *, unavailable: Collection[str]) -> dict[str, Any]:
    for pool in (compute, aux):
        if pool and (cluster.pool(pool) is None or pool in unavailable):
            raise FailedPrecondition(
                "unable to bind a resource pool that does not exist or is not available to the workspace"
            )
    return {"default_compute_pool": compute, "default_aux_pool": aux}


def _identity(group: AgentUserGroup | UnsetType) -> dict[str, Any]:
    """Columns of the POSIX identity: user with uid, group with gid, each pair whole or absent."""
    if isinstance(group, UnsetType):
        return {}
    columns = posix_columns(group)
    for number, name in (("agent_uid", "agent_user"), ("agent_gid", "agent_group")):
        if (columns[number] is None) != (columns[name] is None):
            raise InvalidRequest(f"{number} and {name} must both be set or both be absent")
    return columns
