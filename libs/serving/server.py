"""Serves HTTP with uvicorn until it is told to stop; the services with HTTP of their own share it."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import structlog
import uvicorn

from libs.serving.connections import ConnectionLimit, possible_connections
from libs.serving.limits import HttpLimits
from libs.serving.protocol import HttpProtocol

log = structlog.get_logger()

BACKLOG: Final = 1024
CLEAN_UP_S: Final = 2.0
"""How long requests that were cut may take to clean up."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the service: uvicorn would raise them again, in the middle of its shutdown."""
        yield


async def serve_http(
    config: uvicorn.Config,
    *,
    host: str,
    port: int,
    stop: asyncio.Event,
    listening: Callable[[int], None],
    limits: HttpLimits,
    tls: ssl.SSLContext | None = None,
    reserved_descriptors: int = 0,
) -> None:
    """Serve ``config`` on an address until ``stop`` is set; requests may go on for its graceful shutdown time.

    port       0 picks a free one
    listening  told the port, once connections are accepted
    limits     what a client may ask of the server before anybody knows who it is
    tls        as ``tls_context`` makes it; None serves plain HTTP
    reserved_descriptors  what the application opens beside the connections of its clients
    Raises OSError when the address is taken.
    """
    config.load()
    config.ssl = tls
    most = possible_connections(limits.connections, reserved=reserved_descriptors)
    config.http_protocol_class = partial(  # type: ignore[assignment]  # uvicorn only calls it
        HttpProtocol, limits=limits, connection_limit=ConnectionLimit(most)
    )
    server = _Server(config)
    # Everything made so far stays, and looking through it again and again for garbage costs one part in twenty.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    port = listener.getsockname()[1]
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        log.info("http.listening", host=host, port=port, tls=tls is not None, connections=most)
        listening(port)
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.should_exit = True
        await serving
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=CLEAN_UP_S)
        log.info("http.stopped")
