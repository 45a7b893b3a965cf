"""Allocations that wait for slots, the oldest first, with the reason that the scheduler has noted."""

from __future__ import annotations

from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import allocations, start_estimates, tasks, wait_notes
from libs.db.tables.users import users
from libs.states.allocation import AllocationState
from services.api.access.rights.rights import UserRights
from services.api.access.rights.task_rows import visible_tasks
from services.api.queries.pagination import sql_page
from services.api.wire.base import Pagination
from services.api.wire.cluster.waiting import GetWaitingQuery


async def find_waiting(
    connection: AsyncConnection, wanted: GetWaitingQuery, *, rights: UserRights
) -> tuple[list[RowMapping], Pagination]:
    """The page of ``wanted``, of what the caller may see."""
    found = _waiting(wanted).where(visible_tasks(rights))
    total = (await connection.execute(select(func.count()).select_from(found.subquery()))).scalar_one()
    page = sql_page(total, offset=wanted.offset, limit=wanted.limit)
    ordered = found.order_by(allocations.c.requested_at, allocations.c.allocation_id)
    rows = (await connection.execute(ordered.offset(page.start).limit(page.limit))).mappings()
    return list(rows), page.pagination


def _waiting(wanted: GetWaitingQuery) -> Select[tuple[object, ...]]:
    noted = and_(
        wait_notes.c.task_id == allocations.c.task_id,
        wait_notes.c.allocation_id == allocations.c.allocation_id,
        func.starts_with(allocations.c.wait_reason, wait_notes.c.reason),
    )
    estimated = and_(
        start_estimates.c.allocation_id == allocations.c.allocation_id, start_estimates.c.pool == allocations.c.pool
    )
    not_past = func.greatest(start_estimates.c.estimated_at, func.now())
    query = (
        select(
            allocations.c.allocation_id,
            allocations.c.task_id,
            allocations.c.job_id,
            allocations.c.name,
            allocations.c.pool,
            allocations.c.slots,
            allocations.c.requested_at,
            allocations.c.wait_reason,
            func.coalesce(wait_notes.c.code, "").label("code"),
            wait_notes.c.since,
            start_estimates.c.jobs_ahead,
            start_estimates.c.slots_ahead,
            # Greatest leaves out what is NULL, which here means that nobody knows.
            case((start_estimates.c.estimated_at.is_not(None), not_past)).label("estimated_at"),
            func.coalesce(start_estimates.c.basis, "").label("basis"),
            start_estimates.c.made_at,
            users.c.username,
        )
        .join(tasks, tasks.c.task_id == allocations.c.task_id)
        .join(users, users.c.id == tasks.c.owner_id)
        .outerjoin(wait_notes, noted)
        .outerjoin(start_estimates, estimated)
        .where(allocations.c.released_at.is_(None), allocations.c.state == AllocationState.PENDING)
    )
    if wanted.resource_pool:
        query = query.where(allocations.c.pool == wanted.resource_pool)
    if wanted.job_id:
        query = query.where(allocations.c.job_id == wanted.job_id)
    if wanted.task_id:
        query = query.where(allocations.c.task_id == wanted.task_id)
    if wanted.experiment_id:
        query = query.where(tasks.c.experiment_id == wanted.experiment_id)
    return query
