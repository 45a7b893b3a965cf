"""Requests as clients send them to a proxy, and as it passes them on. Source: RFC 9112 3.2; RFC 9110 7.6.1."""

from __future__ import annotations

import binascii
from asyncio import StreamReader
from base64 import b64decode
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from libs.outbound.destinations import Authority, authority

_FOR_THIS_HOP: Final = frozenset({"proxy-authorization", "proxy-connection", "connection", "keep-alive"})


class ProxyRequest(Struct, frozen=True, kw_only=True):
    """``token`` is the password of the client; a tunnel has neither head nor body."""

    to: Authority
    token: str
    is_tunnel: bool
    method: str
    path: str
    headers: tuple[str, ...]
    body_bytes: int

    @property
    def scheme(self) -> Literal["http", "https"]:
        return "https" if self.is_tunnel else "http"

    @property
    def head(self) -> bytes:
        """For the server itself, which is asked to close the connection when it has answered."""
        return self.head_for(self.path)

    def head_for(self, target: str, *more: str) -> bytes:
        """The head with another request target, and with further headers."""
        lines = (f"{self.method} {target} HTTP/1.1", *self.headers, *more, "Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_request(reader: StreamReader) -> ProxyRequest:
    """Raises ValueError, EOFError, asyncio.LimitOverrunError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "transfer-encoding" in headers:
        raise ValueError("bodies of unknown length are not passed on")
    is_tunnel = method == "CONNECT"
    parts = urlsplit(f"//{target}" if is_tunnel else target)
    if not parts.hostname or (is_tunnel and parts.port is None) or (not is_tunnel and parts.scheme != "http"):
        raise ValueError(f"{target!r} is no target for a proxy")
    kept = [line for line in lines if line.partition(":")[0].strip().lower() not in _FOR_THIS_HOP]
    return ProxyRequest(
        to=authority(parts.hostname, 80 if parts.port is None else parts.port),
        token=_password(headers.get("proxy-authorization", "")),
        is_tunnel=is_tunnel,
        method=method,
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        headers=tuple(kept),
        body_bytes=int(headers.get("content-length", "0")),
    )


def _password(credentials: str) -> str:
    """Of Basic credentials (RFC 7617); nothing for what is none."""
    kind, _, encoded = credentials.partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        return b64decode(encoded, validate=True).decode("latin-1").partition(":")[2]
    except binascii.Error:
        return ""
