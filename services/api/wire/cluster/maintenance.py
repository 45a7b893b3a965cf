"""REST shapes of maintenance windows."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Instant, Message, Timestamp


class Maintenance(Message, kw_only=True):
    id: int
    resource_pool: str
    """Empty where nodes are named."""
    nodes: list[str]
    start_time: Timestamp | None
    end_time: Timestamp | None
    message: str


class AnnounceMaintenanceRequest(Message, kw_only=True):
    """Of ``resource_pool``, or of ``nodes``; both times have to be there."""

    resource_pool: str = ""
    nodes: list[str] = []
    start_time: Instant | None = None
    end_time: Instant | None = None
    message: str = ""


class ChangeMaintenanceRequest(Message, kw_only=True):
    """What is left out stays."""

    resource_pool: str | UnsetType = UNSET
    nodes: list[str] | UnsetType = UNSET
    start_time: Instant | UnsetType = UNSET
    end_time: Instant | UnsetType = UNSET
    message: str | UnsetType = UNSET


class MaintenanceResponse(Message, kw_only=True):
    maintenance: Maintenance


class GetMaintenanceResponse(Message, kw_only=True):
    """The first first."""

    maintenance: list[Maintenance]
