"""Serving HTTP with uvicorn until somebody says stop; the services with HTTP of their own share it."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog
import uvicorn

from libs.errors import InvalidRequest

log = structlog.get_logger()

BACKLOG: Final = 1024
LAST_WORDS_S: Final = 2.0
"""How long requests that were cut may take to clean up."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the service: uvicorn would raise them again, in the middle of its shutdown."""
        yield


def tls_context(*, cert: Path, key: Path) -> ssl.SSLContext:
    """What a server needs to be spoken to over TLS 1.2 or newer.

    cert  PEM file with the certificate, followed by those that lead to a known authority
    key   PEM file with its private key, without a passphrase
    Raises InvalidRequest that says which file is not as it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for path in (cert, key):
        try:
            path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"security.tls: {path} cannot be read: {error.strerror}") from error
    try:
        # Without a password somebody at the terminal would be asked for it, and nobody is there.
        context.load_cert_chain(cert, key, password=lambda: "none")
    except ssl.SSLError as error:
        raise InvalidRequest(f"security.tls: {cert} and {key} are not a certificate and its key: {error}") from error
    return context


async def serve_http(
    config: uvicorn.Config,
    *,
    host: str,
    port: int,
    stop: asyncio.Event,
    listening: Callable[[int], None],
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve ``config`` on an address until ``stop`` is set; requests may go on for its graceful shutdown time.

    port       0 picks a free one
    listening  told the port, once connections are accepted
    tls        as ``tls_context`` makes it; None serves plain HTTP
    Raises OSError when the address is taken.
    """
    config.load()
    config.ssl = tls
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
        log.info("http.listening", host=host, port=port, tls=tls is not None)
        listening(port)
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.should_exit = True
        await serving
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=LAST_WORDS_S)
        log.info("http.stopped")
