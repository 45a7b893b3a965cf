"""Why something waits: for whoever submitted it."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.cluster.waiting import find_waiting
from services.api.wire.base import timestamp
from services.api.wire.cluster.waiting import GetWaitingQuery, GetWaitingResponse, WaitingAllocation


async def get_waiting(call: Call[App, GetWaitingQuery, None]) -> GetWaitingResponse:
    async with call.app.db.read() as connection:
        rows, pagination = await find_waiting(connection, call.query, rights=call.rights)
    waiting = [
        WaitingAllocation(
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
        for row in rows
    ]
    return GetWaitingResponse(waiting=waiting, pagination=pagination)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/resolute/waiting",
        handler=get_waiting,
        query=GetWaitingQuery,
        response=GetWaitingResponse,
        summary="What waits for slots, and why",
    ),
)
