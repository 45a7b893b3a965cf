"""The audit log: who changed what. For administrators."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy.engine import RowMapping

from libs.db.audit.search import AuditFilter, count_records, find_records
from libs.errors import InvalidRequest
from libs.instants import parse_instant
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.pagination import sql_page
from services.api.wire.base import int64, timestamp
from services.api.wire.cluster.audit import AuditRecord, ChangedObject, GetAuditQuery, GetAuditResponse


async def get_audit(call: Call[App, GetAuditQuery, None]) -> GetAuditResponse:
    query = call.query
    wanted = AuditFilter(
        username=query.username,
        action=query.action,
        entity=query.entity,
        entity_id=query.entity_id,
        request_id=query.request_id,
        since=_moment("since", query.since),
        before=_moment("before", query.before),
    )
    async with call.app.db.searches, call.app.db.read() as connection:
        page = sql_page(await count_records(connection, wanted), offset=query.offset, limit=query.limit)
        rows = await find_records(connection, wanted, offset=page.start, limit=page.limit)
    return GetAuditResponse(records=[_record(row) for row in rows], pagination=page.pagination)


def _moment(name: str, text: str) -> datetime | None:
    """Raises InvalidRequest."""
    if not text:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        raise InvalidRequest(f"{name}: {error}") from error


def _record(row: RowMapping) -> AuditRecord:
    return AuditRecord(
        id=int64(row["id"]),
        time=timestamp(row["recorded_at"]),
        user_id=row["user_id"],
        username=row["username"],
        allocation_id=row["allocation_id"],
        address=row["address"],
        request_id=row["request_id"],
        action=row["action"],
        target=row["target"],
        details=row["details"],
        changed=msgspec.convert(row["changed"], list[ChangedObject]),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/resolute/audit",
        handler=get_audit,
        query=GetAuditQuery,
        response=GetAuditResponse,
        summary="List who changed what",
    ),
)
