"""Maintenance windows in the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement, as_document
from libs.errors import NotFound
from libs.maintenance.windows import MaintenanceWindow

_COLUMNS: Final = "id, pool, nodes, starts_at, ends_at, message"
_AHEAD: Final = PreparedStatement(
    f"SELECT {_COLUMNS} FROM maintenance_windows WHERE ends_at > :now::timestamptz ORDER BY starts_at, id"  # noqa: S608
)
_ALL: Final = PreparedStatement(f"SELECT {_COLUMNS} FROM maintenance_windows ORDER BY starts_at, id")  # noqa: S608
_ONE: Final = PreparedStatement(f"SELECT {_COLUMNS} FROM maintenance_windows WHERE id = :id FOR UPDATE")  # noqa: S608
_INSERT: Final = PreparedStatement("""
    INSERT INTO maintenance_windows (pool, nodes, starts_at, ends_at, message, created_at)
    VALUES (:pool, :nodes::jsonb, :starts_at, :ends_at, :message, :now) RETURNING id
""")
_UPDATE: Final = PreparedStatement("""
    UPDATE maintenance_windows
    SET pool = :pool, nodes = :nodes::jsonb, starts_at = :starts_at, ends_at = :ends_at, message = :message
    WHERE id = :id
""")
_DELETE: Final = PreparedStatement("DELETE FROM maintenance_windows WHERE id = :id RETURNING id")


async def windows_ahead(connection: Connection, now: datetime) -> list[MaintenanceWindow]:
    """Those that are not over, the first first."""
    return [_window(row) for row in await _AHEAD.rows(connection, now=now)]


async def all_windows(connection: Connection) -> list[MaintenanceWindow]:
    """Those that are over, too."""
    return [_window(row) for row in await _ALL.rows(connection)]


async def lock_window(connection: Connection, window_id: int) -> MaintenanceWindow:
    """To change it in this transaction. Raises NotFound."""
    rows = await _ONE.rows(connection, id=window_id)
    if not rows:
        raise NotFound("maintenance", window_id)
    return _window(rows[0])


async def insert_window(connection: Connection, window: MaintenanceWindow, *, now: datetime) -> int:
    """The id that it gets."""
    (row,) = await _INSERT.rows(connection, **_values(window), now=now)
    found: int = row["id"]
    return found


async def update_window(connection: Connection, window: MaintenanceWindow) -> None:
    await _UPDATE.rows(connection, **_values(window), id=window.id)


async def delete_window(connection: Connection, window_id: int) -> None:
    """Raises NotFound."""
    if not await _DELETE.rows(connection, id=window_id):
        raise NotFound("maintenance", window_id)


def _values(window: MaintenanceWindow) -> dict[str, Any]:
    return {
        "pool": window.pool,
        "nodes": as_document(list(window.nodes)),
        "starts_at": window.starts_at,
        "ends_at": window.ends_at,
        "message": window.message,
    }


def _window(row: Mapping[Any, Any]) -> MaintenanceWindow:
    return MaintenanceWindow(
        id=row["id"],
        pool=row["pool"],
        nodes=tuple(row["nodes"]),
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        message=row["message"],
    )
