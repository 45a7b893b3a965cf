"""A client that says anything, and an application that answers when it is told to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.harness.serving import Address

GET = b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n"


class Application:
    """Answers with the path and the length of the body. What is below ``/held`` waits for ``release``."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.held = asyncio.Event()
        self.left = asyncio.Event()
        """Somebody closed the connection while the application waited for it."""
        self.served: list[str] = []
        self.headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = scope["headers"]
        if scope["path"] == "/wait":
            self.held.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
            return
        body = b""
        if scope["path"] != "/unread":
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    self.left.set()
                    return
                body += message["body"]
                more = message["more_body"]
        if scope["path"].startswith("/held"):
            self.held.set()
            await self.release.wait()
        self.served.append(scope["path"])
        text = f"{scope['path']} {len(body)}\n".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
        await send({"type": "http.response.body", "body": text})


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def say_no_more(self) -> None:
        """Close our side, and go on listening."""
        self._writer.write_eof()

    async def hear(self, until: bytes) -> bytes:
        return await asyncio.wait_for(self._reader.readuntil(until), 20)

    async def hear_all(self) -> bytes:
        """Everything, to the end of the connection."""
        return await asyncio.wait_for(self._reader.read(), 20)

    def leave(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+) ", answers)]
