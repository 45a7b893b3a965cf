"""Announces maintenance windows, and changes them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from libs.db.engine import Connection
from libs.errors import InvalidRequest
from libs.maintenance.rows import insert_window, lock_window, update_window
from libs.maintenance.windows import MaintenanceWindow, check_window
from services.api.wire.cluster.maintenance import AnnounceMaintenanceRequest, ChangeMaintenanceRequest


async def announce_maintenance(
    connection: Connection, request: AnnounceMaintenanceRequest, *, pools: Collection[str], now: datetime
) -> MaintenanceWindow:
    """The window, with its id. Raises InvalidRequest."""
    if request.start_time is None or request.end_time is None:
        raise InvalidRequest("startTime, endTime: both are required")
    window = MaintenanceWindow(
        id=0,
        pool=request.resource_pool,
        nodes=_names(request.nodes),
        starts_at=request.start_time,
        ends_at=request.end_time,
        message=request.message,
    )
    check_window(window, pools=pools, now=now)
    return msgspec.structs.replace(window, id=await insert_window(connection, window, now=now))


async def change_maintenance(
    connection: Connection,
    window_id: int,
    request: ChangeMaintenanceRequest,
    *,
    pools: Collection[str],
    now: datetime,
) -> MaintenanceWindow:
    """The window as it is from now on. Raises NotFound, InvalidRequest."""
    given: dict[str, Any] = {
        "pool": request.resource_pool,
        "nodes": UNSET if request.nodes is UNSET else _names(request.nodes),
        "starts_at": request.start_time,
        "ends_at": request.end_time,
        "message": request.message,
    }
    changes = {name: value for name, value in given.items() if value is not UNSET}
    window = msgspec.structs.replace(await lock_window(connection, window_id), **changes)
    check_window(window, pools=pools, now=now)
    await update_window(connection, window)
    return window


def _names(nodes: Collection[str]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(sorted(set(nodes)))
