"""The servers of the intake: HTTP and, with a certificate, HTTPS beside it on a port of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import uvicorn
from msgspec import structs

from libs.db.connecting.pool import DriverPool
from libs.serving.connections import possible_connections
from libs.serving.server import TlsServer, serve_http
from libs.serving.tls.distrust import log_failed_handshakes
from libs.serving.tls.handshakes import HandshakeFailures
from libs.serving.tls.renewal import ServerCertificate
from services.logs.settings import IntakeSettings

SHUTDOWN_S: Final = 20

Application = Callable[..., object]


def intake_loops(
    app: Application,
    settings: IntakeSettings,
    stop: asyncio.Event,
    *,
    db: DriverPool,
    listening: Callable[[int], None],
    listening_tls: Callable[[int], None],
) -> dict[str, Coroutine[Any, Any, None]]:
    """What takes requests until ``stop`` is set, follows the certificate, and tells which handshakes failed.

    ``db`` knows whose they were; ``listening`` and ``listening_tls`` are called with the ports. Raises InvalidRequest
    when certificate and key are not as they should be.
    """
    if settings.tls.cert is None or settings.tls.key is None:
        return {"http": _serve(app, settings, stop, listening)}
    certificate = ServerCertificate(cert=Path(settings.tls.cert), key=Path(settings.tls.key))
    failures = HandshakeFailures(monotonic=time.monotonic)
    tls = TlsServer(certificate.context, failures)

    share = possible_connections(settings.limits.connections) // 2
    settings = structs.replace(settings, limits=structs.replace(settings.limits, connections=max(1, share)))

    async def both() -> None:
        async with asyncio.TaskGroup() as servers:  # each finishes what it has begun
            servers.create_task(_serve(app, settings, stop, listening))
            servers.create_task(_serve(app, settings, stop, listening_tls, tls))

    return {"http": both(), "certificate": certificate.follow(), "handshakes": log_failed_handshakes(failures, db)}


async def _serve(
    app: Application,
    settings: IntakeSettings,
    stop: asyncio.Event,
    listening: Callable[[int], None],
    tls: TlsServer | None = None,
) -> None:
    config = uvicorn.Config(
        app,
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=settings.idle_connection_s,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    await serve_http(
        config,
        host=settings.host,
        port=settings.port if tls is None else settings.tls.port,
        stop=stop,
        listening=listening,
        limits=settings.limits,
        tls=tls,
        reserved_descriptors=settings.limits.connections if settings.tls.cert else 0,  # of the other server
    )
