"""Message that administrators show to everybody: set, cleared, and read (docs/reference/platform.md 12.1)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from msgspec import UNSET
from sqlalchemy import Boolean, DateTime, bindparam, delete, or_, select
from sqlalchemy.dialects.postgresql import insert

from libs.db.engine import Database
from libs.db.tables.cluster import cluster_message
from libs.errors import InvalidRequest
from libs.tasks.interactive.durations import parse_duration
from services.api.queries.prepared import PreparedQuery
from services.api.wire.base import timestamp
from services.api.wire.cluster.cluster_message import ClusterMessage, SetClusterMessageRequest

LONGEST_MESSAGE: Final = 250
_DAYS_OF: Final = {"d": 1, "w": 7}
_LONG_PART: Final = re.compile(r"([0-9]{1,6})([dw])", re.ASCII)


async def set_message(db: Database, request: SetClusterMessageRequest, *, user_id: int, now: datetime) -> None:
    """From here on it is the only one. Raises InvalidRequest."""
    start = request.start_time or now
    values = {
        "message": _checked_message(request.message),
        "start_time": start,
        "end_time": _checked_end(request, start=start, now=now),
        "created_at": now,
        "created_by": user_id,
    }
    async with db.transaction() as connection:
        row = insert(cluster_message).values(id=1, **values)
        await connection.execute(row.on_conflict_do_update(index_elements=["id"], set_=values))


async def clear_message(db: Database) -> None:
    """There is none any more. Clearing twice changes nothing."""
    async with db.transaction() as connection:
        await connection.execute(delete(cluster_message))


_NOW: Final = bindparam("now", None, type_=DateTime(timezone=True))
_MESSAGE: Final = PreparedQuery(
    select(cluster_message).where(
        or_(cluster_message.c.end_time.is_(None), cluster_message.c.end_time > _NOW),
        or_(bindparam("scheduled", None, type_=Boolean), cluster_message.c.start_time <= _NOW),
    )
)


async def read_message(db: Database, *, now: datetime, scheduled: bool = False) -> ClusterMessage | None:
    """What is shown now; with ``scheduled`` also what will be."""
    async with db.read_prepared() as connection:
        rows = await _MESSAGE.records(connection, now=now, scheduled=scheduled)
    if not rows:
        return None
    (row,) = rows
    return ClusterMessage(
        message=row["message"],
        start_time=timestamp(row["start_time"]),
        end_time=timestamp(row["end_time"]) or UNSET,
        created_time=timestamp(row["created_at"]),
    )


def _checked_message(message: str) -> str:
    if not message.strip():
        raise InvalidRequest("message: must be more than white space")
    if len(message) > LONGEST_MESSAGE:
        raise InvalidRequest(f"message: must not be longer than {LONGEST_MESSAGE} characters")
    return message


def _checked_end(request: SetClusterMessageRequest, *, start: datetime, now: datetime) -> datetime | None:
    end = request.end_time
    if request.duration:
        if end is not None:
            raise InvalidRequest("endTime and duration: only one of them may be set")
        try:
            end = start + _period(request.duration)
        except OverflowError as error:
            raise InvalidRequest("duration: leads beyond the year 9999") from error
    if end is None:
        return None
    if end <= start:
        raise InvalidRequest("endTime: must be after startTime")
    if end <= now:
        raise InvalidRequest("endTime: must be in the future")
    return end


def _period(text: str) -> timedelta:
    """A duration as Go writes it, before which there may be weeks and days: ``1w2d12h``. Raises InvalidRequest."""
    rest = text
    days = 0
    while (part := _LONG_PART.match(rest)) is not None:
        days += int(part[1]) * _DAYS_OF[part[2]]
        rest = rest[part.end() :]
    nanos = parse_duration(rest) if rest or rest == text else 0
    if nanos is None:
        raise InvalidRequest(f"duration: must be something like 90m, 12h, 3d or 2w, not {text[:50]!r}")
    return timedelta(days=days, microseconds=nanos // 1000)
