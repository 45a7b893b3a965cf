"""The launcher as a process: ``python -m services.launcher.main [--settings FILE]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import msgspec
import structlog
import uvloop

from libs.bus import Bus, connect_bus
from libs.clock import Clock, SystemClock
from libs.events import subjects
from libs.events.logs import LogBatch
from libs.events.observation_requests import REPORT_AGAIN, ReportAgainRequest
from libs.loglines.batches import message_id
from libs.run_until_first_exits import run_until_first_exits
from libs.service import run_service, until_signalled
from libs.service_log import ship_lines
from libs.serving.readiness import Readiness
from libs.serving.status import serve_status
from services.launcher.backends.process.wiring import open_process_backend
from services.launcher.backends.protocol import Backend
from services.launcher.cluster_admin import verbs_of
from services.launcher.container.trust import TaskTrust
from services.launcher.loop import OrderLoop
from services.launcher.placeholder_loop import PlaceholderLoop
from services.launcher.reports import Reports
from services.launcher.rpc import Verbs, serve_rpcs
from services.launcher.settings import LauncherSettings
from services.launcher.task_lines import Lines, Publish

log = structlog.get_logger()


async def main(settings: LauncherSettings, environ: Mapping[str, str]) -> None:
    """Carry out the orders of one pool until cancelled; running tasks are left as they are."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        lines = Lines()
        needs = ("bus", "kubernetes") if settings.backend == "kubernetes" else ("bus",)
        # Before the backend, which may stand by for a long time.
        readiness = await stack.enter_async_context(serve_status(settings.telemetry, needs=needs))
        if settings.backend == "kubernetes":
            bus = await stack.enter_async_context(connect_bus(settings.bus))
            readiness.register("bus", bus.problem)
            backend = await stack.enter_async_context(kubernetes_backend(settings, lines, clock, readiness))
        else:
            backend = await stack.enter_async_context(process_backend(settings, environ, clock, lines))
            bus = await stack.enter_async_context(connect_bus(settings.bus))
            readiness.register("bus", bus.problem)
        reports = Reports(pool=settings.pool, bus=bus, capacity=backend.capacity, clock=clock, settings=settings.loop)
        orders = OrderLoop(
            pool=settings.pool, bus=bus, backend=backend, reports=reports, clock=clock, settings=settings.loop
        )
        loops = {}
        if settings.backend == "kubernetes":
            loops["placeholders"] = PlaceholderLoop(pool=settings.pool, bus=bus, backend=backend).run()
        verbs: Verbs = {**verbs_of(backend.cluster_admin), REPORT_AGAIN: (ReportAgainRequest, reports.report_again)}
        await stack.enter_async_context(serve_rpcs(bus, pool=settings.pool, verbs=verbs))
        log.info("launcher.started", pool=settings.pool, backend=settings.backend)
        await run_until_first_exits(
            orders=orders.run(),
            observations=reports.publish_observations(),
            capacity=reports.publish_capacity(),
            lines=ship_lines(bus, subjects.service_lines("launcher", settings.pool)),
            task_lines=lines.run(publisher(settings.pool, bus)),
            **loops,
        )


def publisher(pool: str, bus: Bus) -> Publish:
    async def publish(batch: LogBatch) -> None:
        subject = subjects.logs_of_launcher(pool, batch.task)
        await bus.publish(subject, msgspec.msgpack.encode(batch), msg_id=message_id(batch))

    return publish


def process_backend(
    settings: LauncherSettings, environ: Mapping[str, str], clock: Clock, lines: Lines
) -> AbstractAsyncContextManager[Backend]:
    return open_process_backend(
        pool=settings.pool,
        settings=settings.process,
        tasks=settings.tasks,
        clock=clock,
        environ=environ,
        lines=lines,
    )


def kubernetes_backend(
    settings: LauncherSettings, lines: Lines, clock: Clock, readiness: Readiness
) -> AbstractAsyncContextManager[Backend]:
    # Imported here: a launcher of processes does without the memory of the client library, and of pod specs.
    from libs.cluster.loading import load_cluster_config  # noqa: PLC0415
    from services.launcher.backends.kubernetes.wiring.opening import open_kubernetes_backend  # noqa: PLC0415

    return open_kubernetes_backend(
        pool=settings.pool,
        settings=settings.kubernetes,
        cluster=load_cluster_config(Path(settings.cluster_config) if settings.cluster_config else None),
        tasks=settings.tasks,
        trust=TaskTrust(settings.tasks),
        lines=lines,
        clock=clock,
        readiness=readiness,
    )


async def run(settings: LauncherSettings) -> None:
    """Launch until SIGTERM or SIGINT."""
    await until_signalled(main(settings, dict(os.environ)))
    log.info("launcher.stopped", pool=settings.pool)


if __name__ == "__main__":
    sys.exit(run_service("launcher", LauncherSettings, run, loop_factory=uvloop.new_event_loop))
