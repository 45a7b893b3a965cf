"""Roles and who has them, as the REST interface shows them (docs/reference/platform.md 5.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.users import groups, role_assignments, users
from libs.errors import InvalidRequest
from libs.natural_order.keys import natural_sort_key
from services.api.access.rights.permissions import Permission
from services.api.access.rights.roles import ROLES, Role
from services.api.queries.users.groups import members_of
from services.api.queries.users.users import wire_user
from services.api.wire.base import Pagination
from services.api.wire.users.groups import GroupDetails
from services.api.wire.users.roles import (
    GroupRoleAssignment,
    RoleAssignment,
    RoleAssignmentSummary,
    RolesAndAssignments,
    RoleWithAssignments,
    ScopeTypeMask,
    UserRoleAssignment,
    WirePermission,
    WireRole,
    WorkspaceMembersResponse,
)

MOST_LISTED: Final = 500


def wire_role(role: Role) -> WireRole:
    permissions = sorted(role.permissions, key=lambda permission: permission.number)
    return WireRole(
        role_id=role.id,
        name=role.name,
        permissions=[_wire_permission(permission) for permission in permissions],
        scope_type_mask=ScopeTypeMask(cluster=True, workspace=role.is_local),
    )


def _wire_permission(permission: Permission) -> WirePermission:
    mask = ScopeTypeMask(cluster=True, workspace=not permission.is_global)
    return WirePermission(id=permission.wire_name, name=permission.label, scope_type_mask=mask)


def page_of_roles(
    role_ids: Iterable[int] | None, *, offset: int, limit: int, local_only: bool = False
) -> tuple[list[WireRole], Pagination]:
    """Roles by name.

    role_ids    of which; None is all
    limit       0 is as many as a page holds; so is any number that is larger than that
    local_only  those that can be given in a workspace
    Raises InvalidRequest.
    """
    if offset < 0:
        raise InvalidRequest("offset: must not be negative")
    if limit < 0:
        raise InvalidRequest("limit: must not be negative")
    wanted = ROLES.keys() if role_ids is None else set(role_ids)
    found = sorted((ROLES[i] for i in wanted if i in ROLES and (ROLES[i].is_local or not local_only)), key=_by_name)
    start = min(offset, len(found))
    page = found[start : start + min(limit or MOST_LISTED, MOST_LISTED)]
    pagination = Pagination(
        offset=offset, limit=limit, start_index=start, end_index=start + len(page), total=len(found)
    )
    return [wire_role(role) for role in page], pagination


def _by_name(role: Role) -> str:
    return natural_sort_key(role.name)


async def assignments(connection: AsyncConnection, *conditions: ColumnElement[bool]) -> Sequence[Row[Any]]:
    """Rows of ``role_assignments`` with ``user_id``, which is set where the group stands for one user."""
    query = select(role_assignments, groups.c.user_id).join(groups, groups.c.id == role_assignments.c.group_id)
    order = (role_assignments.c.role_id, role_assignments.c.id)
    return (await connection.execute(query.where(*conditions).order_by(*order))).all()


def with_assignments(rows: Iterable[Row[Any]], role_ids: Iterable[int] = ()) -> list[RoleWithAssignments]:
    """Each role of ``rows`` once with all that it was given to, and those of ``role_ids`` in any case."""
    by_role: dict[int, list[Row[Any]]] = {role_id: [] for role_id in role_ids}
    for row in rows:
        by_role.setdefault(row.role_id, []).append(row)
    return [
        RoleWithAssignments(
            role=wire_role(ROLES[role_id]),
            group_role_assignments=[
                GroupRoleAssignment(group_id=row.group_id, role_assignment=_wire_assignment(row))
                for row in given
                if row.user_id is None
            ],
            user_role_assignments=[
                UserRoleAssignment(user_id=row.user_id, role_assignment=_wire_assignment(row))
                for row in given
                if row.user_id is not None
            ],
        )
        for role_id, given in by_role.items()
        if role_id in ROLES
    ]


def _wire_assignment(row: Row[Any]) -> RoleAssignment:
    role = RoleAssignment(role=wire_role(ROLES[row.role_id]), scope_cluster=row.workspace_id is None)
    if row.workspace_id is not None:
        role.scope_workspace_id = row.workspace_id
    return role


def summarised(rows: Iterable[Row[Any]]) -> RolesAndAssignments:
    """Each role once, with everywhere it was given."""
    scopes = defaultdict[int, set[int | None]](set)
    for row in rows:
        if row.role_id in ROLES:
            scopes[row.role_id].add(row.workspace_id)
    return RolesAndAssignments(
        roles=[wire_role(ROLES[role_id]) for role_id in scopes],
        assignments=[
            RoleAssignmentSummary(
                role_id=role_id,
                scope_workspace_ids=sorted(scope for scope in given if scope is not None),
                scope_cluster=None in given,
            )
            for role_id, given in scopes.items()
        ],
    )


async def workspace_members(connection: AsyncConnection, workspace_id: int, *, name: str) -> WorkspaceMembersResponse:
    """Groups and users with a role in the workspace; of those, the ones whose name contains ``name``."""
    in_it = await assignments(connection, role_assignments.c.workspace_id == workspace_id)
    group_query = select(groups.c.id, groups.c.name).where(
        any_of(groups.c.id, {row.group_id for row in in_it}), groups.c.user_id.is_(None)
    )
    user_query = select(users).where(any_of(users.c.id, _users(in_it)))
    if name:
        group_query = group_query.where(groups.c.name.icontains(name, autoescape=True))
        user_query = user_query.where(
            or_(
                users.c.username.icontains(name, autoescape=True),
                users.c.display_name.icontains(name, autoescape=True),
            )
        )
    found_groups = (await connection.execute(group_query.order_by(groups.c.id))).all()
    found_users = (await connection.execute(user_query.order_by(users.c.id))).mappings().all()
    members = await members_of(connection, [row.id for row in found_groups])
    group_ids, user_ids = {row.id for row in found_groups}, {row["id"] for row in found_users}
    return WorkspaceMembersResponse(
        groups=[GroupDetails(group_id=row.id, name=row.name, users=members.get(row.id, [])) for row in found_groups],
        users_assigned_directly=[wire_user(row) for row in found_users],
        assignments=with_assignments(row for row in in_it if row.group_id in group_ids or row.user_id in user_ids),
    )


def _users(rows: Iterable[Row[Any]]) -> Collection[int]:
    return {row.user_id for row in rows if row.user_id is not None}
