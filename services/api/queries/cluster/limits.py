"""Limits with what is used of them, as far as they concern the caller.

Limits of users, groups and workspaces that have been deleted concern nobody, and are not shown.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.cluster import resource_limits
from libs.db.tables.tasks import allocations, jobs
from libs.db.tables.users import group_members, groups, users
from libs.db.tables.workspaces import workspaces
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.wire.base import timestamp
from services.api.wire.cluster.limits import GetLimitsQuery, Limit, LimitEnforcement, LimitScope

_LIMIT: Final = resource_limits.c
_SETTER: Final = users.alias("setter")
_HELD: Final = and_(
    allocations.c.released_at.is_(None),
    allocations.c.assigned_at.is_not(None),
    or_(_LIMIT.pool == "", allocations.c.pool == _LIMIT.pool),
)


async def list_limits(connection: AsyncConnection, wanted: GetLimitsQuery, *, rights: UserRights) -> list[Limit]:
    """Users first, then groups and workspaces; of each, those for everybody first."""
    query = _limits().where(_concerns(rights))
    if wanted.resource_pool:
        query = query.where(_LIMIT.pool.in_(("", wanted.resource_pool)))
    if wanted.scope is not None:
        query = query.where(_LIMIT.scope == wanted.scope.value)
    order = {scope: place for place, scope in enumerate(LimitScope)}
    found = [_shown(row) for row in (await connection.execute(query)).mappings()]
    return sorted(found, key=lambda one: (order[one.scope], one.name, one.resource_pool))


async def find_limit(connection: AsyncConnection, ident: int) -> Limit | None:
    """One of them, whomever it is for."""
    row = (await connection.execute(_limits().where(_LIMIT.id == ident))).mappings().one_or_none()
    return None if row is None else _shown(row)


def _limits() -> Select[Any]:
    name = func.coalesce(users.c.username, groups.c.name, workspaces.c.name)
    return (
        select(resource_limits, name.label("name"), _used().label("used"), _SETTER.c.username.label("setter"))
        .outerjoin(users, _is_for(LimitScope.USER, users.c.id))
        .outerjoin(groups, _is_for(LimitScope.GROUP, groups.c.id))
        .outerjoin(workspaces, _is_for(LimitScope.WORKSPACE, workspaces.c.id))
        .outerjoin(_SETTER, _SETTER.c.id == _LIMIT.set_by)
        .where(or_(_LIMIT.subject_id == 0, name.is_not(None)))
    )


def _is_for(scope: LimitScope, ident: ColumnElement[int]) -> ColumnElement[bool]:
    return and_(_LIMIT.scope == scope.value, _LIMIT.subject_id == ident)


def _used() -> ColumnElement[int]:
    members = select(group_members.c.user_id).where(_is_for(LimitScope.GROUP, group_members.c.group_id))
    counts = or_(
        _is_for(LimitScope.USER, jobs.c.owner_id),
        _is_for(LimitScope.WORKSPACE, jobs.c.workspace_id),
        jobs.c.owner_id.in_(members),
    )
    held = select(func.coalesce(func.sum(allocations.c.slots), 0)).join(jobs, jobs.c.job_id == allocations.c.job_id)
    return held.where(_HELD, counts).correlate(resource_limits).scalar_subquery()


def _concerns(rights: UserRights) -> ColumnElement[bool]:
    if rights.may(Action.SET_LIMITS):
        return true()
    user_id = rights.principal.user_id
    mine = select(group_members.c.group_id).where(group_members.c.user_id == user_id)
    return or_(
        _LIMIT.subject_id == 0,
        and_(_LIMIT.scope == LimitScope.USER.value, _LIMIT.subject_id == user_id),
        and_(_LIMIT.scope == LimitScope.GROUP.value, _LIMIT.subject_id.in_(mine)),
        and_(
            _LIMIT.scope == LimitScope.WORKSPACE.value,
            rights.where(Action.VIEW_WORKSPACE, _LIMIT.subject_id),
        ),
    )


def _shown(row: Any) -> Limit:
    slots = int(row["amount"])
    used = row["used"] if row["subject_id"] else None
    return Limit(
        id=row["id"],
        scope=LimitScope(row["scope"]),
        name=row["name"] or "",
        resource_pool=row["pool"],
        slots=slots,
        enforce=LimitEnforcement.PREEMPT if row["preempts"] else LimitEnforcement.WAIT,
        used=used,
        left=None if used is None else max(slots - used, 0),
        set_by=row["setter"] or "",
        set_at=timestamp(row["set_at"]),
    )
