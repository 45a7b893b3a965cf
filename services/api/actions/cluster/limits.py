"""Sets and removes limits of what users, groups and workspaces may hold. Plans keep them from the next one on."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.db.tables.cluster import resource_limits
from libs.errors import InvalidRequest, NotFound
from libs.slot_hours.period_use import PeriodUse
from services.api.actions.cluster.holders import holder_id, required_scope
from services.api.queries.cluster.limits import find_limit
from services.api.wire.cluster.holders import HolderScope
from services.api.wire.cluster.limits import Limit, LimitEnforcement, SetLimitRequest

MOST: Final = 100_000_000


async def set_limit(
    db: Database, cluster: ClusterConfig, request: SetLimitRequest, *, user_id: int, use: PeriodUse, now: datetime
) -> Limit:
    """It takes the place of the one for the same holder and pool. Raises InvalidRequest, NotFound.

    use  remembers what was used, from request to request
    """
    scope, amount = required_scope(request.scope), _amount(request)
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
    # Nobody has to wait for the row meanwhile.
    async with db.read() as connection:
        limit = await find_limit(connection, ident, use=use, now=now)
    if limit is None:  # whom it is for has been deleted meanwhile
        raise NotFound(scope.value, request.name)
    return limit


async def remove_limit(db: Database, ident: int) -> None:
    """Raises NotFound."""
    async with db.transaction() as connection:
        gone = delete(resource_limits).where(resource_limits.c.id == ident).returning(resource_limits.c.id)
        if (await connection.execute(gone)).scalar_one_or_none() is None:
            raise NotFound("limit", ident)


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


async def _subject(connection: AsyncConnection, scope: HolderScope, name: str) -> int:
    """Id of whom it is for; 0 for everybody."""
    if not name:
        if scope is HolderScope.GROUP:
            raise InvalidRequest("name: a limit of a group needs the name of the group")
        return 0
    return await holder_id(connection, scope, name)
