"""REST shapes of roles and their assignments (docs/reference/platform.md 5)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination
from services.api.wire.users.groups import GroupDetails
from services.api.wire.users.users import User


class ScopeTypeMask(Message):
    cluster: bool = False
    workspace: bool = False


class WirePermission(Message):
    id: str = "PERMISSION_TYPE_UNSPECIFIED"
    name: str = ""
    scope_type_mask: ScopeTypeMask | None = None


class WireRole(Message):
    role_id: int = 0
    name: str = ""
    permissions: list[WirePermission] = []
    scope_type_mask: ScopeTypeMask | None = None


class RoleAssignment(Message):
    role: WireRole = field(default_factory=WireRole)
    scope_workspace_id: int | UnsetType = UNSET
    scope_cluster: bool = False


class GroupRoleAssignment(Message):
    group_id: int = 0
    role_assignment: RoleAssignment = field(default_factory=RoleAssignment)


class UserRoleAssignment(Message):
    user_id: int = 0
    role_assignment: RoleAssignment = field(default_factory=RoleAssignment)


class RoleWithAssignments(Message):
    role: WireRole = field(default_factory=WireRole)
    group_role_assignments: list[GroupRoleAssignment] = []
    user_role_assignments: list[UserRoleAssignment] = []


class RoleAssignmentSummary(Message):
    role_id: int = 0
    scope_workspace_ids: list[int] = []
    scope_cluster: bool = False


class RolesAndAssignments(Message):
    """What somebody has, each role once; ``assignments`` are in the same order."""

    roles: list[WireRole] = []
    assignments: list[RoleAssignmentSummary] = []


class SearchRolesRequest(Message):
    offset: int = 0
    limit: int = 0


class SearchAssignableRolesRequest(Message):
    offset: int = 0
    limit: int = 0
    workspace_id: int | UnsetType = UNSET


class RolesResponse(Message):
    roles: list[WireRole] = []
    pagination: Pagination = field(default_factory=Pagination)


class RolesByIdRequest(Message):
    role_ids: list[int] = []


class RolesWithAssignments(Message):
    roles: list[RoleWithAssignments] = []


class AssignmentsRequest(Message):
    group_role_assignments: list[GroupRoleAssignment] = []
    user_role_assignments: list[UserRoleAssignment] = []


class WorkspaceMembersQuery(Message):
    name: str = ""


class WorkspaceMembersResponse(Message):
    groups: list[GroupDetails] = []
    users_assigned_directly: list[User] = []
    assignments: list[RoleWithAssignments] = []
