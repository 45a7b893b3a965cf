"""Reports of what was used: as JSON, and as CSV under the paths that scripts and ``det resources`` know."""

from __future__ import annotations

import calendar
import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final

from libs.errors import InvalidRequest
from libs.instants import parse_instant
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route
from services.api.queries.cluster.usage import (
    PeriodUsage,
    TrialUsage,
    Window,
    allocation_pages,
    trial_usage,
    usage_by_day,
    usage_by_month,
)
from services.api.wire.base import timestamp
from services.api.wire.cluster.usage import (
    Period,
    PeriodsQuery,
    PeriodUsageEntry,
    PeriodUsageResponse,
    RawUsageEntry,
    RawUsageResponse,
    WindowQuery,
)

CSV: Final = "text/csv; charset=utf-8"
_RAW_HEADER: Final = ("experiment_id", "kind", "username", "labels", "slots", "start_time", "end_time", "seconds")
_PERIODS_HEADER: Final = ("aggregation_type", "aggregation_key", "date", "seconds")
_ALLOCATIONS_HEADER: Final = (
    "allocation_id",
    "task_type",
    "username",
    "workspace_name",
    "experiment_id",
    "slots",
    "start_time",
    "end_time",
    "imagepulling_time",
    "slot_hours",
    "resource_pool",
)
_SHOWN_TYPES: Final = ("experiment_label", "username", "resource_pool", "total")
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_MONTH: Final = re.compile(r"([0-9]{4})-([0-9]{2})", re.ASCII)


async def get_raw(call: Call[App, WindowQuery, None]) -> RawUsageResponse:
    return RawUsageResponse(
        resource_entries=[
            RawUsageEntry(
                kind=usage.kind,
                start_time=timestamp(usage.start),
                end_time=timestamp(usage.end),
                experiment_id=usage.experiment_id,
                username=usage.username,
                user_id=usage.user_id,
                labels=usage.labels,
                seconds=usage.seconds,
                slots=usage.slots,
            )
            for usage in await _trial_usage(call)
        ]
    )


async def get_raw_csv(call: Call[App, WindowQuery, None]) -> RawResponse:
    rows = (
        (
            usage.experiment_id,
            usage.kind,
            usage.username,
            ",".join(label.replace("\\", "\\\\").replace(",", "\\,") for label in usage.labels),
            usage.slots,
            timestamp(usage.start),
            timestamp(usage.end),
            f"{usage.seconds:f}",
        )
        for usage in await _trial_usage(call)
    )
    return RawResponse(_csv([_RAW_HEADER, *rows]), CSV)


async def get_allocations_csv(call: Call[App, WindowQuery, None]) -> RawResponse:
    return RawResponse(_allocations(call.app, _window(call)), CSV)


async def get_aggregated(call: Call[App, PeriodsQuery, None]) -> PeriodUsageResponse:
    return PeriodUsageResponse(
        resource_entries=[
            PeriodUsageEntry(
                period_start=usage.start,
                period=call.query.period,
                seconds=usage.seconds.get("total", {}).get("total", 0.0),
                by_username=usage.seconds.get("username", {}),
                by_experiment_label=usage.seconds.get("experiment_label", {}),
                by_resource_pool=usage.seconds.get("resource_pool", {}),
            )
            for usage in await _periods(call)
        ]
    )


async def get_aggregated_csv(call: Call[App, PeriodsQuery, None]) -> RawResponse:
    rows = [
        (kind, key, usage.start, f"{seconds:f}")
        for usage in await _periods(call)
        for kind in _SHOWN_TYPES
        for key, seconds in usage.seconds.get(kind, {}).items()
    ]
    return RawResponse(_csv([_PERIODS_HEADER, *rows]), CSV)


async def _trial_usage(call: Call[App, WindowQuery, None]) -> list[TrialUsage]:
    return await trial_usage(call.app.db, _window(call))


async def _allocations(app: App, window: Window) -> AsyncIterator[bytes]:
    yield _csv([_ALLOCATIONS_HEADER])
    async for rows in allocation_pages(app.db, window):
        yield _csv(_allocation(row, window) for row in rows)


def _allocation(row: Any, window: Window) -> tuple[object, ...]:
    hours = window.slot_seconds(row) / 3600
    return (
        row.allocation_id,
        row.task_type,
        row.username,
        row.workspace_name,
        "" if row.experiment_id is None else row.experiment_id,
        row.slots,
        timestamp(row.start_time),
        timestamp(row.end_time) or "",
        # Images are pulled by the cluster, which does not say how long that took.
        "0.0",
        f"{hours:f}" if hours else "0.0",
        row.pool,
    )


async def _periods(call: Call[App, PeriodsQuery, None]) -> Sequence[PeriodUsage]:
    query = call.query
    for name, given in (("start_date", query.start_date), ("end_date", query.end_date)):
        if not given:
            raise InvalidRequest(f"missing parameter: {name}")
    if query.period is Period.UNSPECIFIED:
        raise InvalidRequest(f"period: must be {Period.DAILY.value} or {Period.MONTHLY.value}")
    monthly = query.period is Period.MONTHLY
    first = _date("start_date", query.start_date, monthly=monthly, is_last=False)
    last = _date("end_date", query.end_date, monthly=monthly, is_last=True)
    if first > last:
        raise InvalidRequest("start_date: must not be after end_date")
    async with call.app.db.searches, call.app.db.read() as connection:
        return await (usage_by_month if monthly else usage_by_day)(connection, first, last)


def _date(name: str, given: str, *, monthly: bool, is_last: bool) -> date:
    """The day, or the first or last one of the month. Raises InvalidRequest."""
    form = "2026-01" if monthly else "2026-01-31"
    wrong = InvalidRequest(f"{name}: must be a {'month' if monthly else 'day'} as in {form}, not {given[:50]!r}")
    found = (_MONTH if monthly else _DAY).fullmatch(given)
    if found is None:
        raise wrong
    try:
        numbers = [int(part) for part in found.groups()]
        if monthly:
            numbers.append(calendar.monthrange(*numbers)[1] if is_last else 1)
        return date(*numbers)
    except ValueError as error:
        raise wrong from error


def _window(call: Call[App, WindowQuery, None]) -> Window:
    """Raises InvalidRequest."""
    after = _moment("timestamp_after", call.query.timestamp_after)
    before = _moment("timestamp_before", call.query.timestamp_before)
    if after > before:
        raise InvalidRequest("timestamp_after: must not be after timestamp_before")
    return Window(after=after, before=before, now=call.app.clock.now())


def _moment(name: str, given: str) -> datetime:
    if not given:
        raise InvalidRequest(f"missing parameter: {name}")
    try:
        return parse_instant(given)
    except ValueError as error:
        raise InvalidRequest(f"{name}: {error}") from error


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


_WINDOW: Final[dict[str, Any]] = {"method": "GET", "query": WindowQuery}
_PERIODS: Final[dict[str, Any]] = {"method": "GET", "query": PeriodsQuery}

ROUTES: Final = (
    Route(
        path="/api/v1/resources/allocation/raw",
        handler=get_raw,
        response=RawUsageResponse,
        summary="List the allocations of a period with their use of slots",
        **_WINDOW,
    ),
    Route(
        path="/api/v1/resources/allocation/aggregated",
        handler=get_aggregated,
        response=PeriodUsageResponse,
        summary="Sum up the use of slots by day or month",
        **_PERIODS,
    ),
    Route(
        path="/resources/allocation/raw",
        handler=get_raw_csv,
        raw=True,
        summary="Download the allocations of a period as CSV",
        **_WINDOW,
    ),
    Route(
        path="/resources/allocation/allocations-csv",
        handler=get_allocations_csv,
        raw=True,
        summary="Download the allocations of a period with their times of pulling images as CSV",
        **_WINDOW,
    ),
    Route(
        path="/resources/allocation/aggregated",
        handler=get_aggregated_csv,
        raw=True,
        summary="Download the use of slots by day or month as CSV",
        **_PERIODS,
    ),
)
