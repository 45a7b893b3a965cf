"""Limits with what is used of them, as far as they concern the caller.

Limits of users, groups and workspaces that have been deleted concern nobody, and are not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.cluster import resource_limits
from libs.db.tables.tasks import allocations, jobs
from libs.db.tables.users import group_members
from libs.slot_hours.period_use import PeriodUse
from libs.slot_hours.periods import Period, next_begin
from libs.slot_hours.use import Key, Use
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.cluster.holders import NAME, concerns, is_for, with_holders
from services.api.wire.base import timestamp
from services.api.wire.cluster.holders import HolderScope
from services.api.wire.cluster.limits import GetLimitsQuery, Limit, LimitEnforcement, LimitPeriod

_HOUR_S: Final = 3600
_LIMIT: Final = resource_limits.c
_HELD: Final = and_(
    allocations.c.released_at.is_(None),
    allocations.c.assigned_at.is_not(None),
    or_(_LIMIT.pool == "", allocations.c.pool == _LIMIT.pool),
)


async def list_limits(
    connection: AsyncConnection, wanted: GetLimitsQuery, *, rights: UserRights, use: PeriodUse, now: datetime
) -> list[Limit]:
    """Users first, then groups and workspaces; of each, those for everybody first.

    use  remembers what was used, from request to request
    """
    query = _limits().where(concerns(resource_limits, rights, Action.SET_LIMITS))
    if wanted.resource_pool:
        query = query.where(_LIMIT.pool.in_(("", wanted.resource_pool)))
    if wanted.scope is not None:
        query = query.where(_LIMIT.scope == wanted.scope.value)
    order = {scope: place for place, scope in enumerate(HolderScope)}
    found = await _shown(connection, (await connection.execute(query)).mappings().all(), use, now)
    return sorted(found, key=lambda one: (order[one.scope], one.name, one.resource_pool, one.period or ""))


async def find_limit(connection: AsyncConnection, ident: int, *, use: PeriodUse, now: datetime) -> Limit | None:
    """One of them, whomever it is for; ``use`` as for ``list_limits``."""
    rows = (await connection.execute(_limits().where(_LIMIT.id == ident))).mappings().all()
    found = await _shown(connection, rows, use, now)
    return found[0] if found else None


def _limits() -> Select[Any]:
    used = _used().label("used")
    return with_holders(resource_limits, used).where(or_(_LIMIT.subject_id == 0, NAME.is_not(None)))


def _used() -> ColumnElement[int]:
    group = is_for(resource_limits, HolderScope.GROUP, group_members.c.group_id)
    members = select(group_members.c.user_id).where(group)
    counts = or_(
        is_for(resource_limits, HolderScope.USER, jobs.c.owner_id),
        is_for(resource_limits, HolderScope.WORKSPACE, jobs.c.workspace_id),
        jobs.c.owner_id.in_(members),
    )
    held = select(func.coalesce(func.sum(allocations.c.slots), 0)).join(jobs, jobs.c.job_id == allocations.c.job_id)
    return held.where(_HELD, counts).correlate(resource_limits).scalar_subquery()


async def _shown(connection: AsyncConnection, rows: Sequence[RowMapping], use: PeriodUse, now: datetime) -> list[Limit]:
    periods: set[Period] = {row["period"] for row in rows if row["period"]}
    hours = {period: await use.read(connection, period, now) for period in sorted(periods)}
    groups = {row["subject_id"] for row in rows if row["scope"] == HolderScope.GROUP.value and row["period"]}
    members = await _members(connection, groups)
    found = []
    for row in rows:
        period: Period | None = row["period"] or None
        used = float(row["used"]) if period is None else _hours(row, hours[period], members)
        found.append(_limit(row, used if row["subject_id"] else None, now))
    return found


async def _members(connection: AsyncConnection, group_ids: Iterable[int]) -> set[tuple[int, int]]:
    """Pairs of a group and a user."""
    query = select(group_members.c.group_id, group_members.c.user_id)
    found = await connection.execute(query.where(any_of(group_members.c.group_id, group_ids)))
    return {(row.group_id, row.user_id) for row in found}


def _hours(limit: RowMapping, used: Mapping[Key, Use], members: Collection[tuple[int, int]]) -> float:
    """Slot-hours that count against it."""
    subject = limit["subject_id"]

    def counts(pool: str, owner: int, workspace: int) -> bool:
        if limit["pool"] not in ("", pool):
            return False
        if limit["scope"] == HolderScope.GROUP.value:
            return (subject, owner) in members
        return bool(subject == (owner if limit["scope"] == HolderScope.USER.value else workspace))

    return sum(use.total_s for key, use in used.items() if counts(*key)) / _HOUR_S


def _limit(row: RowMapping, used: float | None, now: datetime) -> Limit:
    amount, period = row["amount"], row["period"]
    return Limit(
        id=row["id"],
        scope=HolderScope(row["scope"]),
        name=row["name"] or "",
        resource_pool=row["pool"],
        slots=None if period else int(amount),
        slot_hours=amount if period else None,
        period=LimitPeriod(period) if period else None,
        enforce=LimitEnforcement.PREEMPT if row["preempts"] else LimitEnforcement.WAIT,
        used=None if used is None else round(used, 3),
        left=None if used is None else max(round(amount - used, 3), 0.0),
        next_period=timestamp(next_begin(period, now)) if period else None,
        set_by=row["setter"] or "",
        set_at=timestamp(row["set_at"]),
    )
