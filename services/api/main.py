"""The api: ``python -m services.api.main [--settings FILE]``."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import uvicorn
import uvloop
from fastapi import FastAPI
from sqlalchemy import select

from libs.bus import connect_bus
from libs.capacity import CapacityView
from libs.clock import SystemClock
from libs.cluster.loading import load_cluster_config
from libs.db.availability import retry_until_available
from libs.db.engine import connect_database
from libs.db.migrate import provide_schema
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.run_until_first_exits import run_until_first_exits
from libs.service import run_service, until_signalled
from libs.service_log import ship_lines
from libs.serving.readiness import Readiness, always_there
from libs.serving.server import serve_http
from libs.serving.status import serve_status
from libs.serving.tls import tls_context
from libs.tasks.proxy_tokens import ProxyTokens
from services.api.access.rights.loading import rights_of
from services.api.access.sessions import Sessions
from services.api.app import App
from services.api.bootstrap import bootstrap, read_proxy_secret
from services.api.http.application import Lifespan, build_application
from services.api.http.builtin.health import HealthReport, ResourceManagerHealth, UpDown
from services.api.http.database_errors import is_away
from services.api.http.decoding.upload_memory import UploadMemory
from services.api.master_log import MasterLog
from services.api.metrics.writer import MetricsWriter
from services.api.oidc.configured import oidc_provider
from services.api.proxy.proxy import Proxy
from services.api.queries.cluster.manager_health import is_reporting
from services.api.routes import updates
from services.api.routes.table import all_routes
from services.api.settings import ApiSettings, HttpSettings
from services.api.updates.updates import Updates
from services.api.waits.notifier import Notifier

log = structlog.get_logger()

HTTP_PORT: Final = 8080
HTTPS_PORT: Final = 8443


async def main(
    settings: ApiSettings,
    *,
    stop: asyncio.Event,
    listening: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve until ``stop`` is set: then refuse new connections, finish what is under way, cut the long polls.

    ``listening`` is called with the port once requests are taken, which is when everything needed has answered.
    """
    clock = SystemClock()
    cluster = load_cluster_config(Path(settings.cluster_config) if settings.cluster_config else None)
    tls = cluster.security.tls
    context = tls_context(cert=Path(tls.cert), key=Path(tls.key)) if tls.cert else None
    async with AsyncExitStack() as stack:
        # Not the bus: without it most of the api still works.
        needs = ("database", "http")
        readiness = await stack.enter_async_context(serve_status(settings.telemetry, needs=needs))
        db = await stack.enter_async_context(connect_database(settings.database))
        await provide_schema(settings.database)
        cluster_id = await retry_until_available(
            lambda: bootstrap(
                db, clock, cluster, password=settings.initial_user_password, cluster_id=settings.cluster_id
            ),
            timeout_s=settings.database.connect_timeout_s,
        )
        readiness.register("database", db.problem)
        bus = await stack.enter_async_context(connect_bus(settings.bus))
        readiness.register("bus", bus.problem)
        find_rights = partial(rights_of, db, cluster.security.authz)
        sessions = Sessions(db=db, clock=clock, narrow_user_tokens=cluster.security.token.in_tasks == "task")
        app = App(
            db=db,
            bus=bus,
            clock=clock,
            cluster=cluster,
            cluster_id=cluster_id,
            sessions=sessions,
            capacity=CapacityView(),
            notifier=Notifier(),
            metrics_writer=MetricsWriter(db=db, settings=settings.metrics),
            master_log=MasterLog(),
            updates=Updates(
                db=db, sessions=sessions, is_away=is_away, rights_of=find_rights, settings=settings.updates
            ),
            proxy_tokens=ProxyTokens(await read_proxy_secret(db)),
            release_namespace=settings.release_namespace,
            checkpoint_roots=settings.checkpoint_roots,
            oidc=await stack.enter_async_context(oidc_provider(cluster.oidc, clock, os.environ)),
        )
        proxy = Proxy(
            db=db,
            clock=clock,
            sessions=app.sessions,
            tokens=app.proxy_tokens,
            settings=settings.proxy,
            authz=cluster.security.authz,
        )
        application = build_application(
            [route for route in all_routes() if route.path != updates.PATH or cluster.is_switched_on(updates.SWITCH)],
            app,
            app.sessions.authenticate,
            subscribed(app, proxy),
            health=lambda: health(app, readiness),
            enable_cors=settings.http.enable_cors,
            recheck_interval_s=settings.http.recheck_interval_s,
            uploads=UploadMemory(settings.http.upload_memory_bytes),
            below={"/proxy/": proxy},
            rights_of=find_rights,
        )
        # Entered here and not by the server, which would only log what keeps the service from starting.
        await stack.enter_async_context(application.router.lifespan_context(application))

        def serving(port: int) -> None:
            readiness.register("http", always_there)
            listening(port)

        async def serve() -> None:
            await _serve(application, settings, context, stop, serving)
            await app.updates.drain()
            await proxy.connections.drain()

        await run_until_first_exits(  # one loop failing ends the service; its restart is the recovery
            http=serve(),
            capacity=app.capacity.follow(bus),
            metrics=app.metrics_writer.run(),
            proxy=proxy.run(),
            outbox=relay_outbox(db, bus),
            master_log=app.master_log.follow(bus),
            lines=ship_lines(bus, subjects.service_lines("api", socket.gethostname())),
        )


def subscribed(app: App, proxy: Proxy) -> Lifespan:
    """The lifespan of the application: what requests rely on is subscribed to before the first of them comes."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with (
            app.sessions.listening(app.bus),
            app.notifier.listening(app.bus),
            proxy.listening(app.bus),
            app.updates.listening(app.bus),
            app.bus.serve(subjects.NOTES_USE, lambda _: note_use(app), queue="apis"),
        ):
            yield

    return lifespan


async def note_use(app: App) -> bytes:
    """Answers the scheduler, before it ends what seems to be idle, that use of it would be known."""
    async with app.db.read() as connection:
        await connection.execute(select(1))
    return b""


async def health(app: App, readiness: Readiness) -> HealthReport:
    """Down only when the database is: without a launcher or the bus most of the api still works."""
    problems = await readiness.problems()
    reports = [report for pool in app.cluster.resource_pools if (report := app.capacity.of(pool.pool_name))]
    manager = ResourceManagerHealth(
        cluster_name=app.cluster.resource_manager.cluster_name,
        status="up" if is_reporting(reports, app.clock.now()) else "down",
    )
    database: UpDown = "down" if problems["database"] else "up"
    return HealthReport(
        status=database, database=database, bus="down" if problems["bus"] else "up", resource_managers=[manager]
    )


async def _serve(
    application: Callable[..., Any],
    settings: ApiSettings,
    tls: ssl.SSLContext | None,
    stop: asyncio.Event,
    listening: Callable[[int], None],
) -> None:
    http = settings.http
    config = uvicorn.Config(
        application,
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(http.trusted_proxies),
        forwarded_allow_ips=list(http.trusted_proxies),
        timeout_keep_alive=http.keep_alive_s,
        timeout_graceful_shutdown=http.shutdown_grace_s,
    )
    await serve_http(
        config,
        host=http.host,
        port=port_of(http, is_tls=tls is not None),
        descriptor=http.descriptor,
        stop=stop,
        listening=listening,
        limits=http.limits,
        tls=tls,
        reserved_descriptors=2 * settings.proxy.connections + settings.updates.connections,  # taken over, and to tasks
    )


def port_of(settings: HttpSettings, *, is_tls: bool) -> int:
    """The port to listen on: as set, else the one where what is spoken is usually found."""
    if settings.port is not None:
        return settings.port
    return HTTPS_PORT if is_tls else HTTP_PORT


async def run(settings: ApiSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop, serving = asyncio.Event(), asyncio.Event()

    def ask() -> bool:
        stop.set()
        return serving.is_set()

    work = main(settings, stop=stop, listening=lambda port: serving.set())
    await until_signalled(work, ask=ask)


if __name__ == "__main__":
    sys.exit(run_service("api", ApiSettings, run, loop_factory=uvloop.new_event_loop))
