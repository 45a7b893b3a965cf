"""The HTTP server of the api: which port it takes, and how uvicorn is set up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from libs.serving.server import TlsServer, serve_http
from services.api.access.forwarded import BehindProxies
from services.api.settings import ApiSettings, HttpSettings

HTTP_PORT: Final = 8080
HTTPS_PORT: Final = 8443


async def serve(
    application: Callable[..., Any],
    settings: ApiSettings,
    tls: TlsServer | None,
    stop: asyncio.Event,
    listening: Callable[[int], None],
) -> None:
    """Take requests until ``stop`` is set; ``listening`` is called with the port as soon as they are taken."""
    http = settings.http
    config = uvicorn.Config(
        BehindProxies(application, http.trusted_proxies),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # BehindProxies decides whom to believe
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
