"""``/metrics`` and ``/health`` of a service without HTTP of its own: just enough for a scraper and a probe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import structlog

from libs.telemetry import exposition

log = structlog.get_logger()

_REQUEST_TIMEOUT_S = 5.0

RefusedStreams: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Names the streams of the bus that do not store messages; none when all is well."""


@asynccontextmanager
async def serve_status(port: int, refused_streams: RefusedStreams) -> AsyncIterator[None]:
    """Serve on ``port`` of all interfaces while the block runs; 0 serves nothing."""
    if not port:
        yield
        return

    server = await asyncio.start_server(answering(refused_streams), host="0.0.0.0", port=port)  # noqa: S104  # scrapers come from outside
    log.info("status.listening", port=port)
    async with server:
        yield


def answering(
    refused_streams: RefusedStreams,
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """What answers one connection, which is one request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(request, refused_streams))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("status.request_failed", error=repr(error))
        finally:
            writer.close()

    return answer


async def _response(request: bytes, refused_streams: RefusedStreams) -> bytes:
    path = request.split(b" ", 2)[1].split(b"?")[0] if request.count(b" ") >= 2 else b""
    match path:
        case b"/metrics":
            status, kind, body = "200 OK", "text/plain; version=0.0.4; charset=utf-8", exposition()
        case b"/health" | b"/healthz":
            refused = await refused_streams()
            status = "503 Service Unavailable" if refused else "200 OK"
            kind, body = "text/plain", f"the bus does not store {', '.join(refused)}\n".encode() if refused else b"ok\n"
        case _:
            status, kind, body = "404 Not Found", "text/plain", b"not found\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
