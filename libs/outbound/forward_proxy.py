"""Forward proxy of one process: connects on behalf of its clients, to allowed addresses only.

A library that opens connections by itself is told to use this proxy. It resolves every name once, looks at the
addresses, and connects to one of those that it has looked at. So redirects are covered, and names that resolve to
another address a moment later (DNS rebinding). HTTPS goes through a tunnel and stays encrypted from end to end.

It listens on loopback, and every client has a token of its own. Source: RFC 9110 9.3.6 (CONNECT); RFC 9112 3.2.2.
"""

from __future__ import annotations

import asyncio
import secrets
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final
from weakref import WeakValueDictionary

import structlog

from libs.outbound.destinations import Authority, Destinations
from libs.outbound.outer_proxies import OuterProxy, outer_proxy
from libs.outbound.proxy_requests import ProxyRequest, read_request
from libs.outbound.resolving import resolve

_LOOPBACK: Final = "127.0.0.1"
_CHUNK: Final = 256 * 1024
_REQUEST_S: Final = 10.0
_CONNECT_S: Final = 4.0
"""Shorter than clients wait for the proxy."""
_CONNECTED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"

log = structlog.get_logger(__name__)


class Passage:
    """The way of one client through the proxy.

    url      of the proxy, with the token of this client
    refused  the host that it was not led to, once that has happened
    """

    def __init__(self, port: int, allowed: Destinations) -> None:
        self.token = secrets.token_urlsafe(32)
        self.url = f"http://resolute:{self.token}@{_LOOPBACK}:{port}"
        self.allowed = allowed
        self.refused: Authority | None = None


class DestinationRefused(Exception):
    """All addresses of a host are private."""


class ForwardProxy:
    """Listens for the life of ``open_forward_proxy``."""

    def __init__(self) -> None:
        self._passages: WeakValueDictionary[str, Passage] = WeakValueDictionary()
        self._serving: set[asyncio.Task[None]] = set()
        self._port = 0

    def passage(self, allowed: Destinations) -> Passage:
        """A way for one client, for as long as the client holds it.

        allowed  where it may lead to, beside public addresses
        """
        made = Passage(self._port, allowed)
        self._passages[made.token] = made
        return made

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._accept, _LOOPBACK, 0, limit=_CHUNK)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            # Cancelled only by whoever closes the proxy, who waits for nothing but the end.
            with _closed(writer), suppress(OSError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._serving.discard(task)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                request = await read_request(reader)
        except (ValueError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            return await _answer(writer, "400 Bad Request")
        passage = self._passages.get(request.token)
        if passage is None:
            return await _answer(writer, "407 Proxy Authentication Required")
        try:
            async with asyncio.timeout(_CONNECT_S):
                outer = outer_proxy(request.scheme, request.to)
                server_reader, server_writer = await _connect(request.to, passage.allowed, outer)
        except DestinationRefused:
            passage.refused = request.to
            log.warning("outbound.refused", host=str(request.to))
            return await _answer(writer, "403 Forbidden")
        except (OSError, TimeoutError) as error:
            log.warning("outbound.not_reached", host=str(request.to), error=str(error) or type(error).__name__)
            return await _answer(writer, None)
        with _closed(server_writer):
            if request.is_tunnel:
                await _tunnel(request, outer, (reader, writer), (server_reader, server_writer))
            else:
                await _request(request, outer, (reader, writer), (server_reader, server_writer))


@asynccontextmanager
async def open_forward_proxy() -> AsyncIterator[ForwardProxy]:
    """A proxy for the duration of the block."""
    proxy = ForwardProxy()
    async with proxy.listening():
        yield proxy


async def _connect(to: Authority, allowed: Destinations, outer: OuterProxy | None) -> tuple[StreamReader, StreamWriter]:
    """Raises DestinationRefused, OSError."""
    if outer is not None:
        await _check_for(outer, to, allowed)
        return await asyncio.open_connection(outer.host, outer.port, ssl=outer.is_tls or None, limit=_CHUNK)
    fitting = [address for address in await resolve(to) if allowed.allow(to, address)]
    if not fitting:
        raise DestinationRefused
    failure: OSError | None = None
    for address in fitting:
        try:
            async with asyncio.timeout(_CONNECT_S / len(fitting)):  # one that says nothing leaves time for the others
                return await asyncio.open_connection(address, to.port, limit=_CHUNK)
        except OSError as error:  # TimeoutError is one
            failure = error
    assert failure is not None
    raise failure


async def _check_for(outer: OuterProxy, to: Authority, allowed: Destinations) -> None:
    """Raise DestinationRefused for a host with any address to refuse: an outer proxy resolves the name by itself.

    Names that only the outer proxy can resolve are for its rules to judge.
    """
    try:
        addresses = await resolve(to)
    except OSError:
        log.info("outbound.not_resolved", host=str(to), proxy=outer.host)
        return
    if not all(allowed.allow(to, address) for address in addresses):
        raise DestinationRefused


async def _tunnel(
    request: ProxyRequest,
    outer: OuterProxy | None,
    client: tuple[StreamReader, StreamWriter],
    server: tuple[StreamReader, StreamWriter],
) -> None:
    if outer is None:
        client[1].write(_CONNECTED)
    else:
        server[1].write(outer.connect_to(request.to))  # whose answer is the client's
    await _until_first(_pump(client[0], server[1]), _pump(server[0], client[1]))


async def _request(
    request: ProxyRequest,
    outer: OuterProxy | None,
    client: tuple[StreamReader, StreamWriter],
    server: tuple[StreamReader, StreamWriter],
) -> None:
    """One request, after which the connection ends: the next one may have another destination."""
    server[1].write(outer.head_of(request) if outer else request.head)
    left = request.body_bytes
    while left and (data := await client[0].read(min(left, _CHUNK))):
        left -= len(data)
        server[1].write(data)
        await server[1].drain()
    await _until_first(_pump(server[0], client[1]), client[0].read(1))


async def _until_first(*works: Coroutine[None, None, object]) -> None:
    """Run side by side until one ends: a client that is gone leaves nothing behind at a server that says nothing."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(source: StreamReader, sink: StreamWriter) -> None:
    """Copy until the source ends or a side is lost."""
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()


async def _answer(writer: StreamWriter, status: str | None) -> None:
    """An answer without a body; None closes the connection, which clients take for a host that is not reached."""
    if status is not None:
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()


@contextmanager
def _closed(writer: StreamWriter) -> Iterator[None]:
    try:
        yield
    finally:
        writer.close()
