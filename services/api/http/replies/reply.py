"""Replies of handlers, and how they go over the wire.

A ``Message`` is the usual reply, None stands for ``{}``, ``Reply`` adds headers to a message, ``RawResponse`` is bytes
of any kind (downloads, pages) and ``StreamResult`` (``streams.py``) newline-delimited JSON. A Starlette ``Response``
passes as it is, for proxies. Source: docs/reference/platform.md 1.1, 15 (gzip, security headers),
docs/reference/tasks-and-cli.md 1.2.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from starlette.types import Send

GZIP_MIN_BYTES: Final = 2048
_GZIP_IN_THREAD_BYTES: Final = 64 * 1024
_GZIP_LEVEL: Final = 4

SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"x-xss-protection", b"1; mode=block"),
)
JSON_TYPE: Final = (b"content-type", b"application/json")
EMPTY_MESSAGE: Final = b"{}"
"""What None, the usual answer to a report, looks like."""

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A message with headers, such as the cookie of a login."""

    message: msgspec.Struct | None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawResponse:
    """Bytes as they are, never compressed: whole, or as they come when ``content`` is an iterable.

    An iterable is asked for its first piece before anything is sent, so an error up to there is still an HTTP error.
    """

    content: bytes | AsyncIterable[bytes]
    media_type: str = "application/octet-stream"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def encode_message(message: object, *, pretty: bool = False) -> bytes:
    """The JSON of a message (or of anything msgspec encodes), keys of maps in order; None is ``{}``."""
    body = EMPTY_MESSAGE if message is None else msgspec.json.encode(message, order="deterministic")
    return msgspec.json.format(body, indent=4) if pretty else body


def as_headers(headers: Mapping[str, str]) -> Headers:
    """Headers in the form ASGI wants."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def send_json(
    send: Send, body: bytes, *, accept_encoding: str, headers: Headers, status: int = 200, compress: bool = True
) -> None:
    """Send a complete JSON body, compressed when it is worth it and the client understands it."""
    if compress and len(body) >= GZIP_MIN_BYTES:
        headers = [*headers, (b"vary", b"Accept-Encoding")]
        if accepts_gzip(accept_encoding):
            body = await _gzip(body)
            headers.append((b"content-encoding", b"gzip"))
    await send_bytes(send, body, status=status, headers=[JSON_TYPE, *headers])


async def send_bytes(send: Send, body: bytes, *, status: int, headers: Headers) -> None:
    """Send a complete body as it is."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def send_raw(send: Send, response: RawResponse, *, headers: Headers) -> None:
    """Send a RawResponse; its own headers win over ``headers``."""
    own = [(b"content-type", response.media_type.encode("latin-1")), *as_headers(response.headers)]
    names = {name for name, _ in own}
    headers = [*own, *(header for header in headers if header[0] not in names)]
    if isinstance(response.content, bytes):
        await send_bytes(send, response.content, status=response.status, headers=headers)
        return
    started = False
    start: dict[str, Any] = {"type": "http.response.start", "status": response.status, "headers": headers}
    async for piece in response.content:
        if not started:
            await send(start)
            started = True
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    if not started:
        await send(start)
    await send({"type": "http.response.body", "body": b""})


def accepts_gzip(accept_encoding: str) -> bool:
    """Does an Accept-Encoding header allow gzip? (``gzip;q=0`` says no.)"""
    for part in accept_encoding.lower().split(","):
        coding, _, parameters = part.strip().partition(";")
        if coding.strip() in {"gzip", "*"}:
            return parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


async def _gzip(body: bytes) -> bytes:
    if len(body) < _GZIP_IN_THREAD_BYTES:
        return gzip.compress(body, _GZIP_LEVEL, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, _GZIP_LEVEL, mtime=0)
