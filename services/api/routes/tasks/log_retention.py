"""Removal of logs whose time is over, and the time that is left: the api asks the logs service for both."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from libs.bus import Bus
from libs.events import subjects
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.tasks.log_retention import load_trial_retention, remaining_days
from services.api.wire.base import int64
from services.api.wire.tasks.log_retention import CleanupLogsResponse, RemainingDaysResponse

CLEANUP_TIMEOUT_S: Final = 300.0
"""Removing many lines takes long; what is not removed by then is removed nevertheless."""


async def cleanup(call: Call[App, None, None]) -> CleanupLogsResponse:
    removed = await _ask(call.app.bus, "cleanup", timeout_s=CLEANUP_TIMEOUT_S)
    return CleanupLogsResponse(removed_count=int64(removed["removed"]))


async def remaining(call: Call[App, None, None]) -> RemainingDaysResponse:
    async with call.app.db.read() as connection:
        kept = await load_trial_retention(connection, call.path_int("id"))

    async def default_days() -> int:
        return (await _ask(call.app.bus, "retention"))["days"]

    days = await remaining_days(kept, default_days=default_days, now=call.app.clock.now())
    return RemainingDaysResponse(remaining_days=UNSET if days is None else days)


async def _ask(bus: Bus, verb: str, *, timeout_s: float = 5.0) -> dict[str, int]:
    """Raises Unavailable when no logs service answers in time; asking again does no harm."""
    return msgspec.json.decode(
        await bus.request(subjects.rpc("logs", verb), b"", timeout_s=timeout_s), type=dict[str, int]
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/cleanup_logs",
        handler=cleanup,
        response=CleanupLogsResponse,
        summary="Remove expired log lines",
    ),
    Route(
        method="GET",
        path="/api/v1/trials/{id}/remaining_log_retention_days",
        handler=remaining,
        response=RemainingDaysResponse,
        summary="Get how much longer the logs of a trial are kept",
    ),
)
