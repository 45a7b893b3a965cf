"""The logs service: ``python -m services.logs.main [--settings FILE]``."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
import uvloop

from libs.bus import connect_bus
from libs.clock import SystemClock
from libs.db.availability import retry_until_available
from libs.db.connecting.pool import connect_pool
from libs.db.migrate import provide_schema
from libs.events import subjects
from libs.run_until_first_exits import run_until_first_exits
from libs.service import run_service, until_signalled
from libs.service_log import ship_lines
from libs.serving.readiness import always_there
from libs.serving.status import serve_status
from services.logs.intake.http import intake_app
from services.logs.intake.serving import intake_loops
from services.logs.intake.tokens import TokenCache
from services.logs.log_retention import LogRetention
from services.logs.settings import LogsSettings
from services.logs.writing.writer import LogWriter

log = structlog.get_logger()


async def main(
    settings: LogsSettings,
    *,
    stop: asyncio.Event,
    listening: Callable[[int], None] = lambda port: None,
    listening_tls: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve until ``stop`` is set: then refuse new requests, finish those under way, finish the batches in hand.

    ``listening`` is called with the port once requests are taken, ``listening_tls`` with that of HTTPS.
    """
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        readiness = await stack.enter_async_context(serve_status(settings.telemetry, needs=("database", "bus", "http")))
        db = await stack.enter_async_context(connect_pool(settings.database))
        await provide_schema(settings.database)
        readiness.register("database", db.problem)
        readiness.register("database storage", db.storage_problem)
        bus = await stack.enter_async_context(connect_bus(settings.bus))
        readiness.register("bus", bus.problem)
        retention = LogRetention(db=db, clock=clock, settings=settings.retention)
        await retry_until_available(retention.make_partitions, timeout_s=settings.database.connect_timeout_s)
        writer = LogWriter(db=db, bus=bus, settings=settings.writer, name=settings.writer.name or socket.gethostname())
        tokens = TokenCache(
            db=db, clock=clock, cache_s=settings.intake.token_cache_s, grace_s=settings.intake.token_grace_s
        )
        app = intake_app(db=db, bus=bus, tokens=tokens, clock=clock, settings=settings.intake)
        for verb, answer in (("cleanup", retention.serve_cleanup), ("retention", retention.serve_default)):
            await stack.enter_async_context(bus.serve(subjects.rpc("logs", verb), answer, queue="logs"))

        def serving(port: int) -> None:
            readiness.register("http", always_there)
            listening(port)

        await run_until_first_exits(
            **intake_loops(app, settings.intake, stop, db=db, listening=serving, listening_tls=listening_tls),
            writer=writer.run(),
            retention=retention.run(),
            lines=ship_lines(bus, subjects.service_lines("logs", socket.gethostname())),
        )


async def run(settings: LogsSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop, serving = asyncio.Event(), asyncio.Event()

    def ask() -> bool:
        stop.set()
        return serving.is_set()

    await until_signalled(main(settings, stop=stop, listening=lambda port: serving.set()), ask=ask)


if __name__ == "__main__":
    sys.exit(run_service("logs", LogsSettings, run, loop_factory=uvloop.new_event_loop))
