"""REST shapes of the retention of logs (docs/reference/logs.md 4.9)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Int64, Message


class CleanupLogsResponse(Message):
    removed_count: Int64 = "0"


class RemainingDaysResponse(Message):
    """-1 is for ever, 0 is over; without a number as long as the trial has not ended."""

    remaining_days: int | UnsetType = UNSET
