"""Rights of one caller: the one place where rows of ``actions.py`` become yes, no, and conditions of SQL.

What ``call_table.py`` says of calls is asked before they are handled: under RBAC all of it, under ``basic`` what is for
administrators. What is for owners is asked where these are known.

Under ``rbac`` it is known which roles the caller has, and where; that is read anew for every request, so that what was
taken away is gone with the next one. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import ColumnElement, false, select, true

from libs.db.any_of import any_of
from libs.db.tables.workspaces import projects
from libs.errors import NotFound, PermissionDenied
from services.api.access.principal import Principal
from services.api.access.rights.actions import MATRIX, Action, Basic, Scope
from services.api.access.rights.permissions import Permission
from services.api.access.rights.roles import ROLES

_OF_OWNERS: Final = frozenset({Basic.OWNER, Basic.OWNER_OR_PARENT})
CHECK_PERMISSIONS: Final = ", please check your permissions."
"""Behind every text of what was not found, under RBAC."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Roles of a user, by themselves and through groups.

    everywhere    permissions for the whole cluster
    by_workspace  workspace -> further permissions in it
    """

    everywhere: frozenset[Permission] = frozenset()
    by_workspace: dict[int, frozenset[Permission]] = field(default_factory=dict)

    @staticmethod
    def of(assignments: Iterable[tuple[int, int | None]]) -> Grants:
        """From pairs of a role and the workspace that it is given in; None is the whole cluster."""
        everywhere: frozenset[Permission] = frozenset()
        by_workspace: dict[int, frozenset[Permission]] = {}
        for role_id, workspace_id in assignments:
            role = ROLES.get(role_id)
            permissions = frozenset[Permission]() if role is None else role.permissions
            if workspace_id is None:
                everywhere |= permissions
            else:
                by_workspace[workspace_id] = by_workspace.get(workspace_id, frozenset()) | permissions
        return Grants(everywhere, by_workspace)

    def has(self, permission: Permission, workspace_id: int | None) -> bool:
        if permission in self.everywhere:
            return True
        return workspace_id is not None and permission in self.by_workspace.get(workspace_id, ())

    def has_anywhere(self, permission: Permission) -> bool:
        return permission in self.everywhere or any(permission in held for held in self.by_workspace.values())

    def workspaces(self, permissions: Iterable[Permission]) -> list[int]:
        """Workspaces in which the user has all of these, whether there or for the whole cluster."""
        missing = frozenset(permissions) - self.everywhere
        return sorted(workspace for workspace, held in self.by_workspace.items() if missing <= held)


@dataclass(frozen=True, slots=True)
class UserRights:
    """What a caller may do.

    grants  what the roles of the caller give; None where roles do not count: under ``basic``, and for a task's own
            token, which reaches what is the task's own
    """

    principal: Principal
    grants: Grants | None = None
    would_be: Grants | None = None
    """Under ``permissive``: what would count under ``rbac``, and is looked at for the log only."""

    @property
    def by_roles(self) -> bool:
        return self.grants is not None

    @property
    def as_by_roles(self) -> UserRights:
        """What they would be under ``rbac``."""
        return UserRights(self.principal, self.would_be)

    def may(
        self,
        action: Action,
        *,
        workspace_id: int | None = None,
        owner_ids: Collection[int] = (),
        parent_owner_ids: Collection[int] = (),
        itself: bool = False,
    ) -> bool:
        """May the caller do it?

        workspace_id      of the object; None for what is in none
        owner_ids         who owns the object
        parent_owner_ids  who owns what it is in, which counts where the row says so
        itself            the object is the caller
        """
        rule = MATRIX[action]
        if self.grants is None:
            return (
                rule.basic is Basic.ANYBODY
                or self.principal.admin
                or (rule.basic in _OF_OWNERS and self.principal.user_id in owner_ids)
                or (rule.basic is Basic.OWNER_OR_PARENT and self.principal.user_id in parent_owner_ids)
                or (rule.basic is Basic.SELF and itself)
            )
        if rule.basic is Basic.SELF and itself and action is not Action.RENAME_USER:
            return True
        return all(self._has(permission, rule.scope, workspace_id) for permission in rule.needs)

    def require(
        self,
        action: Action,
        *,
        workspace_id: int | None = None,
        owner_ids: Collection[int] = (),
        parent_owner_ids: Collection[int] = (),
        itself: bool = False,
    ) -> None:
        """Raises PermissionDenied when the caller may not."""
        owners = {"owner_ids": owner_ids, "parent_owner_ids": parent_owner_ids}
        if not self.may(action, workspace_id=workspace_id, **owners, itself=itself):
            raise PermissionDenied(self.refusal(action))

    def refusal(self, action: Action) -> str:
        """What a caller is told who may not do it."""
        rule = MATRIX[action]
        return rule.refusal if self.grants is None else denial(rule.needs)

    def sees(self, action: Action, *, workspace_id: int | None = None) -> bool:
        """May the caller know of the object that the action is about?"""
        view = MATRIX[action].view
        return self.grants is None or view is None or self.grants.has(view, workspace_id)

    def require_seen(self, action: Action, noun: str, ident: object, *, workspace_id: int | None = None) -> None:
        """Raises NotFound when the caller may not know of the object."""
        if not self.sees(action, workspace_id=workspace_id):
            raise NotFound(noun, ident)

    def where(
        self, action: Action, workspace: ColumnElement[int], *, owner: ColumnElement[int] | None = None
    ) -> ColumnElement[bool]:
        """Condition on rows of a list: the caller may do this with what is in the workspace of that column.

        owner  who owns the row, where that counts under basic authorization; None leaves it to ``may``, row by row
        """
        needs = MATRIX[action].needs
        if self.grants is None and owner is not None and not self.may(action):
            return owner == self.principal.user_id
        if self.grants is None or self.grants.everywhere.issuperset(needs):
            return true()
        workspaces = self.grants.workspaces(needs)
        return any_of(workspace, workspaces) if workspaces else false()

    def where_project(self, action: Action, project: ColumnElement[int]) -> ColumnElement[bool]:
        """The same for rows that know their project only."""
        if self.workspaces_where(action) is None:
            return true()
        mine = self.where(action, projects.c.workspace_id)
        return project.in_(select(projects.c.id).where(mine))

    def may_everywhere(self, *actions: Action | None) -> bool:
        """May the caller do all of these with whatever there is, so that nobody has to look where it is?"""
        if self.grants is None:
            return True
        rules = [MATRIX[action] for action in actions if action is not None]
        needed = {need for rule in rules for need in rule.needs} | {rule.view for rule in rules if rule.view}
        return self.grants.everywhere.issuperset(needed)

    def workspaces_where(self, action: Action) -> list[int] | None:
        """Workspaces in which the caller may do this; None is all of them."""
        needs = MATRIX[action].needs
        if self.grants is None or self.grants.everywhere.issuperset(needs):
            return None
        return self.grants.workspaces(needs)

    def _has(self, permission: Permission, scope: Scope, workspace_id: int | None) -> bool:
        assert self.grants is not None
        if scope is Scope.ANYWHERE:
            return self.grants.has_anywhere(permission)
        return self.grants.has(permission, None if scope is Scope.CLUSTER else workspace_id)


def denial(needs: Collection[Permission]) -> str:
    """The text of a 403 under RBAC (docs/reference/platform.md 5.4)."""
    return f"access denied; required permissions: {', '.join(permission.wire_name for permission in needs)}"
