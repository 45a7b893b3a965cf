"""Why something waits: for whoever submitted it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy.engine import RowMapping

from libs.events.requests.queue_checks import QueueAnswer
from services.api.actions.cluster.waiting_estimates import estimates_now
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.waiting import find_waiting
from services.api.wire.base import timestamp
from services.api.wire.cluster.waiting import GetWaitingQuery, GetWaitingResponse, WaitingAllocation


async def get_waiting(call: Call[App, GetWaitingQuery, None]) -> GetWaitingResponse:
    async with call.app.db.read() as connection:
        rows, pagination = await find_waiting(connection, call.query, rights=call.rights)
    # Who asks about something of their own does not wait for the next round of estimates.
    is_about_one = bool(call.query.job_id or call.query.task_id or call.query.experiment_id)
    estimates = await estimates_now(call.app.bus, rows) if is_about_one else {}
    waiting = [_shown(row, estimates.get(row["allocation_id"]), now=call.app.clock.now()) for row in rows]
    return GetWaitingResponse(waiting=waiting, pagination=pagination)


def _shown(row: RowMapping, estimate: QueueAnswer | None, *, now: datetime) -> WaitingAllocation:
    known = WaitingAllocation(
        allocation_id=row["allocation_id"],
        task_id=row["task_id"],
        job_id=row["job_id"],
        name=row["name"],
        username=row["username"],
        resource_pool=row["pool"],
        slots=row["slots"],
        requested_at=timestamp(row["requested_at"]),
        reason=row["wait_reason"],
        reason_code=row["code"],
        since=timestamp(row["since"]),
        ahead=row["jobs_ahead"],
        slots_ahead=row["slots_ahead"],
        estimated_start=timestamp(row["estimated_at"]),
        basis=row["basis"],
        estimate_made_at=timestamp(row["made_at"]),
    )
    if estimate is None:
        return known
    return msgspec.structs.replace(
        known,
        ahead=estimate.jobs_ahead,
        slots_ahead=estimate.slots_ahead,
        estimated_start=timestamp(estimate.estimated_start),
        basis=estimate.basis,
        estimate_made_at=timestamp(now),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/resolute/waiting",
        handler=get_waiting,
        query=GetWaitingQuery,
        response=GetWaitingResponse,
        summary="List what waits for slots, and why",
    ),
)
