"""Weights of the shares of users, groups and workspaces. Endpoints of our own; the reference interface has none."""

from __future__ import annotations

from services.api.wire.base import Message, Timestamp
from services.api.wire.cluster.holders import HolderScope


class SetShareRequest(Message, kw_only=True):
    scope: HolderScope | None = None
    """Required."""
    name: str = ""
    """Of the user, group or workspace; required."""
    weight: float | None = None
    """Greater than 0; required. Who has none weighs 1."""


class Share(Message, kw_only=True):
    id: int
    scope: HolderScope
    name: str
    weight: float
    set_by: str = ""
    """Name of the administrator; empty when there is no such user any more."""
    set_at: Timestamp | None = None


class SharePart(Message, kw_only=True):
    scope: HolderScope
    name: str


class UsedShare(Message, kw_only=True):
    """Of a pool that remembers use (``half_life``)."""

    resource_pool: str
    share: list[SharePart]
    """Whose it is, the outermost first: a user within a group, for example."""
    weight: float
    used_slots: float
    """Used on average, where less counts the longer ago it was."""
    effective_slots: float
    """Of the pool as it is now, if all who have used some of it wanted everything."""


class ShareResponse(Message, kw_only=True):
    share: Share


class GetSharesQuery(Message):
    scope: HolderScope | None = None


class GetSharesResponse(Message, kw_only=True):
    shares: list[Share]
    used: list[UsedShare]
    """Of pools that remember use, and of those who have used some of them."""
