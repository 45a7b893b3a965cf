"""Times in which nothing runs on the nodes of a pool, or on named nodes. Everybody sees them, administrators announce
them."""

from __future__ import annotations

from typing import Final

from libs.maintenance.rows import all_windows, delete_window
from libs.maintenance.windows import MaintenanceWindow
from services.api.actions.cluster.maintenance import announce_maintenance, change_maintenance
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.wire.base import Empty, timestamp
from services.api.wire.cluster.maintenance import (
    AnnounceMaintenanceRequest,
    ChangeMaintenanceRequest,
    GetMaintenanceResponse,
    Maintenance,
    MaintenanceResponse,
)


async def list_maintenance(call: Call[App, None, None]) -> GetMaintenanceResponse:
    async with call.app.db.read() as connection:
        return GetMaintenanceResponse(maintenance=[_shown(window) for window in await all_windows(connection)])


async def announce(call: Call[App, None, AnnounceMaintenanceRequest]) -> MaintenanceResponse:
    async with call.app.db.transaction() as connection:
        window = await announce_maintenance(connection, call.body, pools=_pools(call.app), now=call.app.clock.now())
    return MaintenanceResponse(maintenance=_shown(window))


async def change(call: Call[App, None, ChangeMaintenanceRequest]) -> MaintenanceResponse:
    async with call.app.db.transaction() as connection:
        window = await change_maintenance(
            connection, call.path_int("id"), call.body, pools=_pools(call.app), now=call.app.clock.now()
        )
    return MaintenanceResponse(maintenance=_shown(window))


async def cancel(call: Call[App, None, None]) -> Empty:
    async with call.app.db.transaction() as connection:
        await delete_window(connection, call.path_int("id"))
    return Empty()


def _pools(app: App) -> list[str]:
    return [pool.pool_name for pool in app.cluster.resource_pools]


def _shown(window: MaintenanceWindow) -> Maintenance:
    return Maintenance(
        id=window.id,
        resource_pool=window.pool,
        nodes=list(window.nodes),
        start_time=timestamp(window.starts_at),
        end_time=timestamp(window.ends_at),
        message=window.message,
    )


_ALL: Final = "/api/v1/resolute/maintenance"
_ONE: Final = f"{_ALL}/{{id}}"

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        handler=list_maintenance,
        response=GetMaintenanceResponse,
        summary="List maintenance windows, when nothing runs on which nodes",
    ),
    Route(
        method="POST",
        path=_ALL,
        handler=announce,
        body=AnnounceMaintenanceRequest,
        response=MaintenanceResponse,
        summary="Announce a maintenance window",
    ),
    Route(
        method="PATCH",
        path=_ONE,
        handler=change,
        body=ChangeMaintenanceRequest,
        response=MaintenanceResponse,
        summary="Change a maintenance window",
    ),
    Route(method="DELETE", path=_ONE, handler=cancel, response=Empty, summary="Cancel a maintenance window"),
)
