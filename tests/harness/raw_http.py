"""A client that costs next to nothing: prepared bytes over kept-alive connections, so that the server is measured."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_CHUNKED: Final = b"transfer-encoding: chunked"
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"


class RawConnection(asyncio.Protocol):
    """One HTTP/1.1 connection that sends requests one after another, to a server that says how long its answers are
    or where they end."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        lines = [f"Host: {urlsplit(url).netloc}", *(f"{name}: {value}" for name, value in headers.items())]
        self._head = "\r\n".join(lines).encode()
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[bytes] | None = None

    @classmethod
    async def open(cls, url: str, headers: dict[str, str]) -> RawConnection:
        parts = urlsplit(url)
        loop = asyncio.get_running_loop()
        host, port = parts.hostname or "", parts.port or 80
        _, connection = await loop.create_connection(lambda: cls(url, headers), host, port)
        return connection

    def request(self, path: str, body: bytes, method: str = "POST") -> bytes:
        """A request with a body."""
        line = b"%b %b HTTP/1.1\r\n" % (method.encode(), path.encode())
        return line + b"%b\r\nContent-Length: %d\r\n\r\n%b" % (self._head, len(body), body)

    def get_request(self, path: str) -> bytes:
        """A request without a body."""
        return b"GET %b HTTP/1.1\r\n%b\r\n\r\n" % (path.encode(), self._head)

    async def send(self, request: bytes) -> bytes:
        """Head and body of the answer. Raises RuntimeError unless it is 200, ConnectionError when there is none."""
        answer = await self.exchange(request)
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(repr(answer))
        return answer

    async def exchange(self, request: bytes) -> bytes:
        """Head and body of the answer, whatever it is. Raises ConnectionError when there is none."""
        assert self._transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answered

    @property
    def is_open(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._answered is not None and not self._answered.done() and self._is_complete():
            answer, self._received = self._received, b""
            self._answered.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionError(f"no answer: {error}"))

    def _is_complete(self) -> bool:
        end = self._received.find(_END_OF_HEAD)
        if end < 0:
            return False
        head = self._received[:end].lower()
        start = head.find(_LENGTH)
        if start < 0:
            return _CHUNKED in head and self._received.endswith(_LAST_CHUNK)
        start += len(_LENGTH)
        length = int(head[start:].partition(b"\r")[0])
        return len(self._received) >= end + len(_END_OF_HEAD) + length
