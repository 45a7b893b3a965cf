"""Serves HTTP with uvicorn until it is told to stop; the services with HTTP of their own share it."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import structlog
import uvicorn

from libs.serving.connections import ConnectionLimit, possible_connections
from libs.serving.limits import HttpLimits
from libs.serving.protocol import HttpProtocol
from libs.serving.tls.handshakes import HandshakeFailures, TlsStart
from libs.waiting import wait_until_set

log = structlog.get_logger()

BACKLOG: Final = 1024
CLEAN_UP_S: Final = 2.0
"""How long requests that were cut may take to clean up."""
_DATE_FOR_S: Final = 1.0
"""How long the ``Date`` of answers is good for."""
_DATE_IS_DUE: Final = 0
"""The count at which uvicorn makes a new one."""


class TlsServer(NamedTuple):
    """What a server needs to speak HTTPS."""

    context: ssl.SSLContext
    failures: HandshakeFailures


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Have it shut down, at once."""
        self.should_exit = True
        self._ending.set()

    def cut(self) -> None:
        """End the requests that are left: they wait for something, as long polls do, which is no error."""
        log.info("http.cut", requests=len(self.server_state.tasks))
        for task in self.server_state.tasks:
            task.cancel()
        self.force_exit = True

    async def main_loop(self) -> None:
        """In place of what it overrides, which looks ten times a second whether it is to end."""
        while not await self.on_tick(_DATE_IS_DUE):
            await wait_until_set(self._ending, timeout_s=_DATE_FOR_S)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the service: uvicorn would raise them again, in the middle of its shutdown."""
        yield


async def serve_http(
    config: uvicorn.Config,
    *,
    host: str,
    port: int,
    descriptor: int | None = None,
    stop: asyncio.Event,
    listening: Callable[[int], None],
    limits: HttpLimits,
    tls: TlsServer | None = None,
    reserved_descriptors: int = 0,
) -> None:
    """Serve ``config`` on an address until ``stop`` is set; requests may go on for its graceful shutdown time.

    port        0 picks a free one
    descriptor  of an open listening socket, in place of host and port
    listening   told the port, once connections are accepted
    limits      what a client may ask of the server before anybody knows who it is
    tls         certificate, and who is told of handshakes that fail; None serves plain HTTP
    reserved_descriptors  what the application opens beside the connections of its clients
    Raises OSError when the address is taken, or ``descriptor`` is no socket.
    """
    config.load()
    grace_s = config.timeout_graceful_shutdown
    if grace_s is not None:  # uvicorn's own, for what does not end when it is cut
        config.timeout_graceful_shutdown = grace_s + int(CLEAN_UP_S)
    most = possible_connections(limits.connections, reserved=reserved_descriptors)
    http = partial(HttpProtocol, limits=limits, connection_limit=ConnectionLimit(most))
    config.http_protocol_class = http if tls is None else _over_tls(http, tls)  # type: ignore[assignment]  # only called
    server = _Server(config)
    # Everything made so far stays, and looking through it again and again for garbage costs one part in twenty.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    listener = _new_listener(host, port) if descriptor is None else _inherited_listener(descriptor)
    host, port = listener.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        log.info("http.listening", host=host, port=port, tls=tls is not None, connections=most)
        listening(port)
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.end()
        await asyncio.wait({serving}, timeout=grace_s)
        if not serving.done():
            server.cut()
        await serving
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=CLEAN_UP_S)
        log.info("http.stopped")


def _over_tls(http: Callable[..., HttpProtocol], tls: TlsServer) -> Callable[..., TlsStart]:
    """Makes what a new connection begins with, of what uvicorn gives to a protocol."""

    def protocol(**given: Any) -> TlsStart:
        return TlsStart(partial(http, **given), context=tls.context, failures=tls.failures)

    return protocol


def _new_listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def _inherited_listener(descriptor: int) -> socket.socket:
    listener = socket.socket(fileno=descriptor)
    listener.set_inheritable(False)  # it is for this process, not for those that it starts
    return listener
