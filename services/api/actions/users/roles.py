"""Gives roles to groups and users, and takes them away: all that a request names, or nothing
(docs/reference/platform.md 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.users import groups, role_assignments, users
from libs.db.tables.workspaces import workspaces
from libs.errors import AlreadyExists, InvalidRequest, NotFound
from libs.events.changes import GroupChanged
from services.api.access.rights.roles import ROLES
from services.api.actions.users.groups import personal_group
from services.api.wire.users.roles import AssignmentsRequest, RoleAssignment


@dataclass(frozen=True, slots=True)
class GivenRole:
    """A role for one user or one group; ``workspace_id`` is None for the whole cluster."""

    is_users: bool
    holder_id: int
    role_id: int
    workspace_id: int | None


def asked_for(request: AssignmentsRequest) -> list[GivenRole]:
    """What a request names. Raises InvalidRequest, NotFound for a role."""
    found = [_assignment(False, each.group_id, each.role_assignment) for each in request.group_role_assignments] + [
        _assignment(True, each.user_id, each.role_assignment) for each in request.user_role_assignments
    ]
    if not found:
        raise InvalidRequest("must specify at least one group or user assignment")
    # In one order: of two who ask for the same at once, the second waits for the first.
    return sorted(found, key=lambda each: (each.is_users, each.holder_id, each.role_id, each.workspace_id or 0))


def _assignment(is_users: bool, holder_id: int, asked: RoleAssignment) -> GivenRole:
    workspace_id = asked.scope_workspace_id if isinstance(asked.scope_workspace_id, int) else None
    if workspace_id is not None and asked.scope_cluster:
        raise InvalidRequest("roleAssignment: scopeWorkspaceId and scopeCluster exclude each other")
    return GivenRole(is_users, holder_id, asked.role.role_id, workspace_id)


async def add_assignments(db: Database, wanted: Iterable[GivenRole]) -> None:
    """Raises NotFound, InvalidRequest for a role that is for the whole cluster only, AlreadyExists."""
    changed: set[int] = set()
    async with db.transaction() as connection:
        for each in wanted:
            role = ROLES.get(each.role_id)
            if role is None:
                raise NotFound("role", each.role_id)
            if each.workspace_id is not None and not role.is_local:
                raise InvalidRequest("a global-only permission cannot be assigned to a local scope")
            await _check_workspace(connection, each.workspace_id)
            group_id = await _group(connection, each)
            new = insert(role_assignments).values(
                group_id=group_id, role_id=each.role_id, workspace_id=each.workspace_id
            )
            added = await connection.execute(new.on_conflict_do_nothing().returning(role_assignments.c.id))
            if added.first() is None:
                raise AlreadyExists(f"row already exists: {_text(each)}")
            changed.add(group_id)
        await announce_roles(connection, changed)


async def remove_assignments(db: Database, unwanted: Iterable[GivenRole]) -> None:
    """Raises NotFound."""
    changed: set[int] = set()
    async with db.transaction() as connection:
        for each in unwanted:
            group_id = await _group(connection, each)
            gone = delete(role_assignments).where(
                role_assignments.c.group_id == group_id,
                role_assignments.c.role_id == each.role_id,
                role_assignments.c.workspace_id.is_not_distinct_from(each.workspace_id),
            )
            if (await connection.execute(gone.returning(role_assignments.c.id))).first() is None:
                raise NotFound("role assignment", _text(each))
            changed.add(group_id)
        await announce_roles(connection, changed)


async def announce_roles(connection: AsyncConnection, group_ids: Collection[int]) -> None:
    """Say of these groups that their roles have changed."""
    query = select(groups.c.id, groups.c.name, groups.c.user_id).where(any_of(groups.c.id, group_ids))
    rows = await connection.execute(query.order_by(groups.c.id))
    changed = (GroupChanged(group_id=row.id, what="roles", name=row.name, user_id=row.user_id) for row in rows)
    await announce(connection, *changed)


async def _group(connection: AsyncConnection, assignment: GivenRole) -> int:
    """The group that has the role; it stays while the transaction lasts."""
    if assignment.is_users:
        user = select(users.c.id).where(users.c.id == assignment.holder_id).with_for_update(key_share=True)
        if await connection.scalar(user) is None:
            raise NotFound("user", assignment.holder_id)
        return await personal_group(connection, assignment.holder_id)
    group = select(groups.c.id).where(groups.c.id == assignment.holder_id, groups.c.user_id.is_(None))
    group_id = await connection.scalar(group.with_for_update(key_share=True))
    if group_id is None:
        raise NotFound("group", assignment.holder_id)
    return int(group_id)


async def _check_workspace(connection: AsyncConnection, workspace_id: int | None) -> None:
    if workspace_id is not None:
        query = select(workspaces.c.id).where(workspaces.c.id == workspace_id).with_for_update(key_share=True)
        if await connection.scalar(query) is None:
            raise NotFound("workspace", workspace_id)


def _text(assignment: GivenRole) -> str:
    holder = f"{'user' if assignment.is_users else 'group'} {assignment.holder_id}"
    scope = "the cluster" if assignment.workspace_id is None else f"workspace {assignment.workspace_id}"
    role = ROLES.get(assignment.role_id)
    return f"{role.name if role else assignment.role_id} of {holder} in {scope}"
