"""Servers of users, as tasks have them: HTTP that tells what it got, websockets, TCP, and some that misbehave."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def http_server() -> AsyncIterator[int]:
    """The port of a server that answers by the last segment of the path."""
    app = web.Application(client_max_size=2**40)
    app.router.add_route("*", "/{path:.*}", _answer)
    runner = web.AppRunner(app, auto_decompress=False, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def tcp_server(talk: Talk) -> AsyncIterator[int]:
    """The port of a server that talks to each client as told, and then closes the connection."""
    talking: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, EOFError):
            pass
        finally:
            talking.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(talking):
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


def says(what: bytes) -> Talk:
    """Reads the head of a request, and says something whatever it was."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(what)
        await writer.drain()

    return talk


async def _answer(request: web.Request) -> web.StreamResponse:
    match request.path.rpartition("/")[2]:
        case "websocket":
            return await _websocket(request)
        case "many":
            return await _many(request, int(request.query["bytes"]))
        case "hash":
            found = hashlib.sha256()
            size = 0
            async for piece in request.content.iter_any():
                found.update(piece)
                size += len(piece)
            return web.json_response({"size": size, "hash": found.hexdigest()})
        case "cookies":
            answer = web.Response(status=302, headers={"Location": "elsewhere", "Connection": "x-mine", "X-Mine": "1"})
            answer.set_cookie("one", "1")
            answer.set_cookie("two", "2")
            return answer
        case "unchanged":
            return web.Response(status=304, headers={"ETag": '"1"'})
        case "forbidden":
            return web.json_response({"message": "no"}, status=403)
    headers = [[name.lower(), value] for name, value in request.headers.items()]
    told = {"method": request.method, "target": request.raw_path, "headers": headers, "body": (await request.text())}
    return web.json_response(told)


async def _many(request: web.Request, size: int) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    piece = bytes(range(256)) * 1024
    while size > 0:
        await answer.write(piece[:size])
        size -= len(piece)
    await answer.write_eof()
    return answer


async def _websocket(request: web.Request) -> web.StreamResponse:
    if request.query.get("refuse"):
        return web.json_response({"message": "not for you"}, status=418)
    socket = web.WebSocketResponse(protocols=("v1.kernel.websocket.jupyter.org",))
    await socket.prepare(request)
    headers = {name.lower(): value for name, value in request.headers.items()}
    await socket.send_json({"headers": headers, "target": request.raw_path})
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket
