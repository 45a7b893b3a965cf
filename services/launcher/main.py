"""The launcher as a process: ``python -m services.launcher.main [--settings FILE]``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog
from prometheus_client import start_http_server

from libs.bus import connect_bus
from libs.clock import SystemClock
from libs.service import run_service
from libs.telemetry import REGISTRY
from services.launcher.backends.process.opening import open_process_backend
from services.launcher.loop import OrderLoop
from services.launcher.reports import Reports
from services.launcher.settings import LauncherSettings

log = structlog.get_logger()


async def main(settings: LauncherSettings, environ: Mapping[str, str]) -> None:
    """Carry out the orders of one pool until SIGTERM or SIGINT; running tasks are left as they are."""
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
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(orders.run(), name="orders"),
                tasks.create_task(reports.publish_observations(), name="observations"),
                tasks.create_task(reports.publish_capacity(), name="capacity"),
            ]
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, _cancel_all, running)


def _cancel_all(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


async def run(settings: LauncherSettings) -> None:
    """Launch until SIGTERM or SIGINT."""
    await main(settings, dict(os.environ))


if __name__ == "__main__":
    sys.exit(run_service("launcher", LauncherSettings, run))
