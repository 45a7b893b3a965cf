"""A websocket client that does nothing by itself: it reads when it is told to, and answers no ping."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import urlsplit

from tests.harness.api import ApiProcess

TEXT: Final = 1
MORE: Final = 0
"""Goes on with a message."""
CLOSE: Final = 8
PING: Final = 9
_LAST: Final = 0x80
_MASKED: Final = 0x80
_FEW_BYTES: Final = 4096


class RawSocket:
    """A connection whose kernel takes little before somebody reads."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, api: ApiProcess, token: str) -> Self:
        url = urlsplit(api.url)
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _FEW_BYTES)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, (url.hostname, url.port))
        reader, writer = await asyncio.open_connection(sock=plain, limit=_FEW_BYTES)
        made = cls(reader, writer)
        head = (
            f"GET /stream HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {token}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        return made

    def write(self, opcode: int, payload: bytes, *, is_last: bool = True) -> None:
        """A frame, without waiting until it is taken."""
        first = (_LAST if is_last else 0) | opcode
        size = len(payload)
        length = bytes([_MASKED | size]) if size < 126 else b"\xff" + size.to_bytes(8)
        if 126 <= size < 65536:
            length = b"\xfe" + size.to_bytes(2)
        # A mask of zeros leaves everything as it is.
        self.writer.write(bytes([first]) + length + bytes(4) + payload)

    async def subscribe(self, **specs: dict[str, Any]) -> None:
        self.write(TEXT, json.dumps({"sync_id": "raw", "subscribe": specs}).encode())
        await self.writer.drain()

    async def frame(self) -> tuple[int, bytes]:
        """Opcode and payload of the next one. Raises IncompleteReadError and ConnectionError when there is none."""
        first, second = await self._reader.readexactly(2)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8))
        return first & 0x0F, await self._reader.readexactly(size)

    async def message(self) -> bytes:
        """The next text."""
        while True:
            opcode, payload = await self.frame()
            if opcode == TEXT:
                return payload

    async def messages_until_closed(self) -> list[bytes]:
        """All texts, without an answer to anything."""
        found: list[bytes] = []
        try:
            while True:
                found.append(await self.message())
        except (asyncio.IncompleteReadError, ConnectionError):
            return found

    async def closed(self) -> int:
        """The code of the close that is told before the connection ends."""
        while True:
            opcode, payload = await self.frame()
            if opcode == CLOSE:
                return int.from_bytes(payload[:2])


@asynccontextmanager
async def raw_socket(api: ApiProcess, token: str) -> AsyncIterator[RawSocket]:
    opened = await RawSocket.open(api, token)
    try:
        yield opened
    finally:
        opened.writer.transport.abort()
