"""The api: ``python -m services.api.main [--settings FILE]``."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from libs.cluster.loading import load_cluster_config
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.run_until_first_exits import run_until_first_exits
from libs.service import run_service, until_signalled
from libs.service_log import ship_lines
from libs.serving.readiness import always_there
from libs.serving.server import TlsServer
from libs.serving.status import serve_status
from libs.serving.tls.distrust import log_failed_handshakes
from libs.serving.tls.handshakes import HandshakeFailures
from libs.serving.tls.renewal import ServerCertificate
from services.api.metrics.rows.owner import keep_summaries
from services.api.proxy.proxy import Proxy
from services.api.settings import ApiSettings
from services.api.startup import server
from services.api.startup.application import application_of
from services.api.startup.opening import open_app


async def main(
    settings: ApiSettings,
    *,
    stop: asyncio.Event,
    listening: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve until ``stop`` is set: then refuse new connections, finish what is under way, cut the long polls.

    ``listening`` is called with the port once requests are taken, which is when everything needed has answered.
    """
    cluster = load_cluster_config(Path(settings.cluster_config) if settings.cluster_config else None)
    files = cluster.security.tls
    certificate = ServerCertificate(cert=Path(files.cert), key=Path(files.key)) if files.cert else None
    failures = HandshakeFailures(monotonic=time.monotonic)
    tls = TlsServer(certificate.context, failures) if certificate else None
    async with AsyncExitStack() as stack:
        # Not the bus: without it most of the api still works.
        needs = ("database", "http")
        readiness = await stack.enter_async_context(serve_status(settings.telemetry, needs=needs))
        app = await stack.enter_async_context(open_app(settings, cluster, readiness))
        proxy = Proxy(
            db=app.db,
            clock=app.clock,
            sessions=app.sessions,
            tokens=app.proxy_tokens,
            settings=settings.proxy,
            authz=cluster.security.authz,
            addresses=cluster.tasks,
        )
        application = application_of(app, proxy, settings.http, readiness)
        # Entered here and not by the server, which would only log what keeps the service from starting.
        await stack.enter_async_context(application.router.lifespan_context(application))

        def serving(port: int) -> None:
            readiness.register("http", always_there)
            listening(port)

        async def serve() -> None:
            await server.serve(application, settings, tls, stop, serving)
            await app.updates.drain()
            await proxy.connections.drain()

        await run_until_first_exits(  # one loop failing ends the service; its restart is the recovery
            http=serve(),
            capacity=app.capacity.follow(app.bus),
            metrics=app.metrics_writer.run(),
            former_release=app.former_release.follow(app.db),
            summaries=keep_summaries(app.db, app.former_release),
            proxy=proxy.run(),
            **({} if certificate is None else {"certificate": certificate.follow()}),
            outbox=relay_outbox(app.db, app.bus),
            master_log=app.master_log.follow(app.bus),
            handshakes=log_failed_handshakes(failures, app.db),
            lines=ship_lines(app.bus, subjects.service_lines("api", socket.gethostname())),
        )


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
