"""The launcher as a process: ``python -m services.launcher.main [--settings FILE]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog
from prometheus_client import start_http_server

from libs.bus import connect_bus
from libs.clock import SystemClock
from libs.service import run_service, until_signalled
from libs.telemetry import REGISTRY
from libs.together import together
from services.launcher.backends.process.opening import open_process_backend
from services.launcher.loop import OrderLoop
from services.launcher.reports import Reports
from services.launcher.settings import LauncherSettings

log = structlog.get_logger()


async def main(settings: LauncherSettings, environ: Mapping[str, str]) -> None:
    """Carry out the orders of one pool until cancelled; running tasks are left as they are."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(
            open_process_backend(
                pool=settings.pool, settings=settings.process, tasks=settings.tasks, clock=clock, environ=environ
            )
        )
        bus = await stack.enter_async_context(connect_bus(settings.bus))
        if settings.telemetry.metrics_port is not None:
            start_http_server(settings.telemetry.metrics_port, registry=REGISTRY)
        reports = Reports(pool=settings.pool, bus=bus, capacity=backend.capacity, clock=clock, settings=settings.loop)
        orders = OrderLoop(
            pool=settings.pool, bus=bus, backend=backend, reports=reports, clock=clock, settings=settings.loop
        )
        log.info("launcher.started", pool=settings.pool, backend=settings.backend)
        await together(
            orders=orders.run(), observations=reports.publish_observations(), capacity=reports.publish_capacity()
        )


async def run(settings: LauncherSettings) -> None:
    """Launch until SIGTERM or SIGINT."""
    await until_signalled(main(settings, dict(os.environ)))
    log.info("launcher.stopped", pool=settings.pool)


if __name__ == "__main__":
    sys.exit(run_service("launcher", LauncherSettings, run))
