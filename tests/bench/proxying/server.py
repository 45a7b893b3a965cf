"""A server that does as little as it can, for measuring what is between it and its clients: ``python -m``.

Prints its ports for HTTP, for HTTP with aiohttp, and for TCP. HTTP: ``.../many/<bytes>``, and anything with a body,
which is dropped; aiohttp answers everything with a few bytes. TCP: 16 bytes, a letter and a number, ask for so many
bytes (D) or announce them (U).
"""

from __future__ import annotations

import asyncio
import re

import uvloop
from aiohttp import web

PIECE = bytes(256 * 1024)
TAKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


async def main() -> None:
    http = await asyncio.start_server(serve_http, "127.0.0.1", 0, limit=2**20)
    tcp = await asyncio.start_server(serve_tcp, "127.0.0.1", 0, limit=2**20)
    app = web.Application()
    app.router.add_get("/{path:.*}", serve_small)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ports = [http.sockets[0].getsockname()[1], runner.addresses[0][1], tcp.sockets[0].getsockname()[1]]
    print(*ports, flush=True)
    await asyncio.Event().wait()


async def serve_small(_: web.Request) -> web.Response:
    return web.Response(text="hello")


async def serve_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if length := re.search(rb"(?i)content-length: (\d+)", head):
                await drop(reader, int(length[1]))
            if many := re.match(rb"GET \S*/many/(\d+) ", head):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % many[1])
                await send(writer, int(many[1]))
            else:
                writer.write(TAKEN)
                await writer.drain()
    except (ConnectionError, EOFError):
        writer.close()


async def serve_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        asked = await reader.readexactly(16)
        if asked.startswith(b"D"):
            await send(writer, int(asked[1:]))
        else:
            await drop(reader, int(asked[1:]))
            writer.write(b"!")
        await reader.read()
    except (ConnectionError, EOFError):
        pass
    writer.close()


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    for _ in range(size // len(PIECE)):
        writer.write(PIECE)
        await writer.drain()


async def drop(reader: asyncio.StreamReader, size: int) -> None:
    while size > 0:
        piece = await reader.read(len(PIECE))
        if not piece:
            raise EOFError
        size -= len(piece)


if __name__ == "__main__":
    uvloop.run(main())
