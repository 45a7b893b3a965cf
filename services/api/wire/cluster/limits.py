"""Limits of what users, groups and workspaces may hold. Endpoints of our own; the reference interface has none."""

from __future__ import annotations

from enum import StrEnum

from services.api.wire.base import Message


class LimitScope(StrEnum):
    USER = "user"
    GROUP = "group"
    WORKSPACE = "workspace"


class LimitEnforcement(StrEnum):
    WAIT = "wait"
    """Nothing new starts while a limit is reached."""
    PREEMPT = "preempt"
    """Besides, those leave that hold more, as far as they can be preempted."""


class SetLimitRequest(Message, kw_only=True):
    scope: LimitScope
    name: str = ""
    """Of the user, group or workspace; empty is each user, or each workspace, that has no such limit of its own."""
    resource_pool: str = ""
    """Empty is all pools together."""
    slots: int
    """That may be held at once."""
    enforce: LimitEnforcement = LimitEnforcement.WAIT


class Limit(Message, kw_only=True):
    id: int
    scope: LimitScope
    name: str = ""
    resource_pool: str = ""
    slots: int
    enforce: LimitEnforcement
    used: int | None = None
    """Slots that are held now; null of a limit for each user or each workspace."""
    left: int | None = None
    """Never less than 0, though more may be held than a limit that was set later allows."""
    set_by: str = ""
    """Name of the administrator; empty when there is no such user any more."""
    set_at: str | None = None


class LimitResponse(Message, kw_only=True):
    limit: Limit


class GetLimitsQuery(Message):
    resource_pool: str = ""
    """Only limits that concern this pool."""
    scope: LimitScope | None = None


class GetLimitsResponse(Message, kw_only=True):
    limits: list[Limit]
