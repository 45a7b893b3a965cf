"""REST shapes of reports of what was used (docs/reference/platform.md 13)."""

from __future__ import annotations

from services.api.wire.base import Message, Timestamp, WireEnum


class Period(WireEnum):
    UNSPECIFIED = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_UNSPECIFIED", 0
    DAILY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY", 1
    MONTHLY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY", 2


class WindowQuery(Message):
    """Text, because clients are told by name which one is missing."""

    timestamp_after: Timestamp = ""
    timestamp_before: Timestamp = ""


class PeriodsQuery(Message):
    start_date: str = ""
    end_date: str = ""
    period: Period = Period.UNSPECIFIED


class RawUsageEntry(Message, kw_only=True):
    kind: str
    start_time: Timestamp | None
    end_time: Timestamp | None
    experiment_id: int
    username: str
    user_id: int
    labels: list[str]
    seconds: float
    slots: int


class RawUsageResponse(Message):
    resource_entries: list[RawUsageEntry] = []


class PeriodUsageEntry(Message, kw_only=True):
    """Of a day, as 2026-01-31, or of a month, as 2026-01; seconds are slot seconds."""

    period_start: str
    period: Period
    seconds: float
    by_username: dict[str, float]
    by_experiment_label: dict[str, float]
    by_resource_pool: dict[str, float]


class PeriodUsageResponse(Message):
    resource_entries: list[PeriodUsageEntry] = []
