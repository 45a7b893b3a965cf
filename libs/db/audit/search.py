"""Reads and shortens the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, delete, func, select, true
from sqlalchemy.engine import RowMapping

from libs.db.engine import Connection, Database
from libs.db.tables.cluster import audit_records

_AT_ONCE: Final = 10_000
"""Rows that one transaction deletes."""


class AuditFilter(Struct, frozen=True, kw_only=True):
    """What records have to match; nothing matches all."""

    username: str = ""
    action: str = ""
    """Part of it, in any case."""
    entity: str = ""
    """As in events: experiment, trial, user, workspace ..."""
    entity_id: str = ""
    request_id: str = ""
    since: datetime | None = None
    before: datetime | None = None

    @property
    def condition(self) -> ColumnElement[bool]:
        columns = audit_records.c
        found: ColumnElement[bool] = true()
        if self.username:
            found &= columns.username == self.username
        if self.action:
            found &= columns.action.icontains(self.action, autoescape=True)
        if self.entity or self.entity_id:
            named = {"entity": self.entity, "id": self.entity_id}
            found &= columns.changed.contains([{key: value for key, value in named.items() if value}])
        if self.request_id:
            found &= columns.request_id == self.request_id
        if self.since is not None:
            found &= columns.recorded_at >= self.since
        if self.before is not None:
            found &= columns.recorded_at < self.before
        return found


async def count_records(connection: Connection, wanted: AuditFilter) -> int:
    query = select(func.count()).select_from(audit_records).where(wanted.condition)
    found: int = (await connection.execute(query)).scalar_one()
    return found


async def find_records(connection: Connection, wanted: AuditFilter, *, offset: int, limit: int) -> list[RowMapping]:
    """The newest first."""
    query = select(audit_records).where(wanted.condition).order_by(audit_records.c.id.desc())
    return list((await connection.execute(query.offset(offset).limit(limit))).mappings())


async def forget_records(db: Database, *, before: datetime) -> int:
    """Delete what was recorded before then; returns how many."""
    old: Any = select(audit_records.c.id).where(audit_records.c.recorded_at < before).limit(_AT_ONCE)
    forgotten = 0
    while True:
        async with db.transaction() as connection:
            found = (await connection.execute(delete(audit_records).where(audit_records.c.id.in_(old)))).rowcount
        forgotten += found
        if found < _AT_ONCE:
            return forgotten
