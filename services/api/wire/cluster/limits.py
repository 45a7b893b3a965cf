"""Limits of what users, groups and workspaces may hold. Endpoints of our own; the reference interface has none."""

from __future__ import annotations

from enum import StrEnum

from services.api.wire.base import Message, Timestamp
from services.api.wire.cluster.holders import HolderScope


class LimitPeriod(StrEnum):
    """A calendar period in UTC; weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class LimitEnforcement(StrEnum):
    WAIT = "wait"
    """Nothing new starts while a limit is reached."""
    PREEMPT = "preempt"
    """Besides, those leave that hold more, as far as they can be preempted; of slot-hours, when all are used, those
    that have no time limit."""


class SetLimitRequest(Message, kw_only=True):
    scope: HolderScope | None = None
    """Required."""
    name: str = ""
    """Of the user, group or workspace; empty is each user, or each workspace, that has no such limit of its own."""
    resource_pool: str = ""
    """Empty is all pools together."""
    slots: int | None = None
    """That may be held at once; either this or ``slotHours``."""
    slot_hours: float | None = None
    """That may be used in each ``period``."""
    period: LimitPeriod | None = None
    enforce: LimitEnforcement = LimitEnforcement.WAIT


class Limit(Message, kw_only=True):
    id: int
    scope: HolderScope
    name: str = ""
    resource_pool: str = ""
    slots: int | None = None
    slot_hours: float | None = None
    period: LimitPeriod | None = None
    enforce: LimitEnforcement
    used: float | None = None
    """Slots that are held now, or slot-hours of this period, with what is left of the time limits of those that run;
    null of a limit for each user or each workspace."""
    left: float | None = None
    """Never less than 0, though more may be held than a limit that was set later allows."""
    next_period: Timestamp | None = None
    """When the next period begins."""
    set_by: str = ""
    """Name of the administrator; empty when there is no such user any more."""
    set_at: Timestamp | None = None


class LimitResponse(Message, kw_only=True):
    limit: Limit


class GetLimitsQuery(Message):
    resource_pool: str = ""
    """Only limits that concern this pool."""
    scope: HolderScope | None = None


class GetLimitsResponse(Message, kw_only=True):
    limits: list[Limit]
