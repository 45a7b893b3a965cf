"""Records of the audit log. An endpoint of our own; the reference interface has none."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Int64, Message, Pagination, Timestamp


class GetAuditQuery(Message):
    """``since`` and ``before`` are RFC 3339; ``limit`` as in other lists: 0 is 100, -1 is everything."""

    username: str = ""
    action: str = ""
    entity: str = ""
    entity_id: str = ""
    request_id: str = ""
    since: Timestamp = ""
    before: Timestamp = ""
    offset: int = 0
    limit: int = 0


class ChangedObject(Message):
    entity: str = ""
    id: str = ""
    what: str = ""


class AuditRecord(Message):
    id: Int64 = "0"
    time: Timestamp | None = None
    user_id: int | None = None
    username: str = ""
    allocation_id: str | None = None
    address: str = ""
    request_id: str = ""
    action: str = ""
    target: dict[str, str] = {}
    details: dict[str, Any] = {}
    changed: list[ChangedObject] = []


class GetAuditResponse(Message, kw_only=True):
    records: list[AuditRecord]
    pagination: Pagination
