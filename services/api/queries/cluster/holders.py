"""Users, groups and workspaces that rows name by kind and id (``scope``, ``subject_id``), as limits and weights do.

Rows whose holders have been deleted concern nobody.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, and_, func, or_, select, true

from libs.db.tables.users import group_members, groups, users
from libs.db.tables.workspaces import workspaces
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.wire.cluster.holders import HolderScope

NAME: Final[ColumnElement[str]] = func.coalesce(users.c.username, groups.c.name, workspaces.c.name)
"""Of the holder, in what ``with_holders`` returns; NULL when it has been deleted."""
_SETTER: Final = users.alias("setter")


def is_for(table: Table, scope: HolderScope, ident: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a row of ``table`` is for the user, group or workspace ``ident``."""
    return and_(table.c.scope == scope.value, table.c.subject_id == ident)


def with_holders(table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    """The rows of ``table``, with the name of the holder (``name``) and of who has set them (``setter``)."""
    return (
        select(table, NAME.label("name"), _SETTER.c.username.label("setter"), *columns)
        .outerjoin(users, is_for(table, HolderScope.USER, users.c.id))
        .outerjoin(groups, is_for(table, HolderScope.GROUP, groups.c.id))
        .outerjoin(workspaces, is_for(table, HolderScope.WORKSPACE, workspaces.c.id))
        .outerjoin(_SETTER, _SETTER.c.id == table.c.set_by)
    )


def concerns(table: Table, rights: UserRights, to_see_all: Action) -> ColumnElement[bool]:
    """Whether a row of ``table`` is for the caller, a group or a workspace of theirs, or for everybody.

    to_see_all  who may do this is shown all rows
    """
    if rights.may(to_see_all):
        return true()
    user_id = rights.principal.user_id
    mine = select(group_members.c.group_id).where(group_members.c.user_id == user_id)
    return or_(
        table.c.subject_id == 0,
        and_(table.c.scope == HolderScope.USER.value, table.c.subject_id == user_id),
        and_(table.c.scope == HolderScope.GROUP.value, table.c.subject_id.in_(mine)),
        and_(
            table.c.scope == HolderScope.WORKSPACE.value,
            rights.where(Action.VIEW_WORKSPACE, table.c.subject_id),
        ),
    )
