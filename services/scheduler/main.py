"""The scheduler: ``python -m services.scheduler.main [--settings FILE]``."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import structlog
import uvloop

from libs.bus import Bus, connect_bus
from libs.cluster.config import ClusterConfig
from libs.cluster.loading import load_cluster_config
from libs.db.availability import retry_until_available
from libs.db.connecting.probe import DatabaseProbe
from libs.db.connecting.settings import DatabaseAddress
from libs.db.failures import may_be_starting
from libs.db.migrate import provide_schema
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.run_until_first_exits import run_until_first_exits
from libs.service import run_service, until_signalled
from libs.service_log import ship_lines
from libs.serving.status import serve_status
from services.scheduler.scheduler_lease import hold_lease
from services.scheduler.settings import SchedulerSettings

log = structlog.get_logger()

Work: TypeAlias = Callable[[SchedulerSettings, ClusterConfig, Bus], Awaitable[None]]


async def main(settings: SchedulerSettings) -> None:
    """Stand by, and schedule while no other scheduler does; until cancelled."""
    cluster = load_cluster_config(Path(settings.cluster_config) if settings.cluster_config else None)
    async with AsyncExitStack() as stack:
        readiness = await stack.enter_async_context(serve_status(settings.telemetry, needs=("database", "bus")))
        database = DatabaseAddress(settings.database)
        probe = DatabaseProbe(lambda: database.url)
        stack.push_async_callback(probe.close)
        await retry_until_available(
            probe.ask, timeout_s=settings.database.connect_timeout_s, is_transient=may_be_starting
        )
        await provide_schema(settings.database)
        readiness.register("database", probe.problem)
        readiness.register("database storage", probe.storage_problem)
        bus = await stack.enter_async_context(connect_bus(settings.bus))
        # Whoever stands by is as ready as whoever acts: an upgrade waits for it before it ends the other one.
        readiness.register("bus", bus.problem)

        async def act() -> None:
            schedule = await load_work()
            await schedule(settings, cluster, bus)

        # One loop failing ends the service; its restart is the recovery.
        await run_until_first_exits(
            outbox=relay_outbox(database, bus),
            lease=hold_lease(lambda: database.url, act, settings.lease),
            lines=ship_lines(bus, subjects.service_lines("scheduler", socket.gethostname())),
        )


async def load_work() -> Work:
    """What whoever holds the lease does, and whoever stands by does without the memory of.

    Loaded in a thread: meanwhile the lease is looked after.
    """

    def load() -> Work:
        from services.scheduler.acting import act  # noqa: PLC0415

        return act

    return await asyncio.to_thread(load)


async def run(settings: SchedulerSettings) -> None:
    """Schedule until SIGTERM or SIGINT."""
    await until_signalled(main(settings))
    log.info("scheduler.stopped")


if __name__ == "__main__":
    sys.exit(run_service("scheduler", SchedulerSettings, run, loop_factory=uvloop.new_event_loop))
