"""Sets and removes limits of what users, groups and workspaces may hold. Plans keep them from the next one on."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Text, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.db.tables.cluster import resource_limits
from libs.db.tables.users import groups, users
from libs.db.tables.workspaces import workspaces
from libs.errors import InvalidRequest, NotFound
from services.api.queries.cluster.limits import find_limit
from services.api.wire.cluster.limits import Limit, LimitEnforcement, LimitScope, SetLimitRequest

MOST: Final = 100_000_000
_NAMES: Final = {
    LimitScope.USER: (users.c.id, func.lower(users.c.username, type_=Text)),
    LimitScope.GROUP: (groups.c.id, func.lower(groups.c.name, type_=Text)),
    LimitScope.WORKSPACE: (workspaces.c.id, func.lower(workspaces.c.name, type_=Text)),
}


async def set_limit(
    db: Database, cluster: ClusterConfig, request: SetLimitRequest, *, user_id: int, now: datetime
) -> Limit:
    """It takes the place of the one for the same holder and pool. Raises InvalidRequest, NotFound."""
    scope, amount = _scope(request), _amount(request)
    if request.resource_pool and cluster.pool(request.resource_pool) is None:
        raise NotFound("resource pool", request.resource_pool)
    async with db.transaction() as connection:
        values = {
            "amount": amount,
            "preempts": request.enforce is LimitEnforcement.PREEMPT,
            "set_by": user_id,
            "set_at": now,
        }
        key = {
            "scope": scope.value,
            "subject_id": await _subject(connection, scope, request.name),
            "pool": request.resource_pool,
            "period": request.period.value if request.period else "",
        }
        row = insert(resource_limits).values(**key, **values)
        made = row.on_conflict_do_update(index_elements=list(key), set_=values).returning(resource_limits.c.id)
        ident: int = (await connection.execute(made)).scalar_one()
        limit = await find_limit(connection, ident, now=now)
    if limit is None:  # whom it is for has been deleted meanwhile
        raise NotFound(scope.value, request.name)
    return limit


async def remove_limit(db: Database, ident: int) -> None:
    """Raises NotFound."""
    async with db.transaction() as connection:
        gone = delete(resource_limits).where(resource_limits.c.id == ident).returning(resource_limits.c.id)
        if (await connection.execute(gone)).scalar_one_or_none() is None:
            raise NotFound("limit", ident)


def _scope(request: SetLimitRequest) -> LimitScope:
    """Raises InvalidRequest."""
    if request.scope is None:
        raise InvalidRequest(f"scope: one of {', '.join(LimitScope)}")
    return request.scope


def _amount(request: SetLimitRequest) -> float:
    """Slots, or slot-hours. Raises InvalidRequest."""
    if (request.slots is None) is (request.slot_hours is None):
        raise InvalidRequest("slots, slotHours: one of both says how much may be held or used")
    if (request.slot_hours is None) is not (request.period is None):
        raise InvalidRequest("period: slotHours are for a day, a week or a month, slots are for none")
    field, amount = ("slots", request.slots) if request.slots is not None else ("slotHours", request.slot_hours)
    if amount is None or not 0 <= amount <= MOST:
        raise InvalidRequest(f"{field}: a number from 0 to {MOST}")
    return amount


async def _subject(connection: AsyncConnection, scope: LimitScope, name: str) -> int:
    """Id of whom it is for; 0 for everybody."""
    if not name:
        if scope is LimitScope.GROUP:
            raise InvalidRequest("name: a limit of a group needs the name of the group")
        return 0
    column, known_as = _NAMES[scope]
    found = await connection.scalar(select(column).where(known_as == name.lower()))
    if found is None:
        raise NotFound(scope.value, name)
    subject: int = found
    return subject
