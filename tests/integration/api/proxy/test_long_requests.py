"""Requests to tasks that go on for long: silent uploads, and transfers while the api ends."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from websockets.utils import accept_key

from tests.harness.api import ApiProcess
from tests.integration.api.proxy.servers import http_server, tcp_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import World

SILENCE_S = 1.0
DRAIN_S = 3


@pytest.fixture
def impatient(world: World) -> Iterator[ApiProcess]:
    """An api that gives bodies little time and ends requests at once, behind a proxy that it trusts."""
    limits = {"body_s": 0.3, "body_bytes_per_s": 1_000_000}
    trusting = {"trusted_proxies": ["127.0.0.1"]}
    http = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 0, "limits": limits, **trusting}
    with world.api("impatient", http=http, proxy={"drain_s": DRAIN_S}) as api:
        yield api


async def test_a_body_on_its_way_to_a_task_may_be_silent(world: World, impatient: ApiProcess) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 1000
        await asyncio.sleep(SILENCE_S)
        yield b"x"

    async with http_server() as port, httpx.AsyncClient(base_url=impatient.url, timeout=30) as client:
        task = insert_service(world, port, unauthenticated=True)
        assert (await client.put(f"/proxy/{task}/hash", content=pieces())).json()["size"] == 1001
        told = (await client.get(f"/proxy/{task}/", headers={"X-Forwarded-For": "9.9.9.9"})).json()
        headers = dict(told["headers"])
        assert (headers["x-forwarded-for"], headers["x-real-ip"]) == ("9.9.9.9", "9.9.9.9")
        assert (await client.post("/api/v1/auth/login", content=pieces())).status_code == 408
        closed = insert_service(world, port)
        assert (await client.put(f"/proxy/{closed}/hash", content=pieces())).status_code == 401


async def test_an_api_that_ends_lets_transfers_live_for_a_while(world: World, impatient: ApiProcess) -> None:
    async def send_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        count = 10 if b"/short" in head else 1000
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count)
        for _ in range(count):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(SILENCE_S / 10)

    async def download(client: httpx.AsyncClient, path: str, begun: asyncio.Event) -> int:
        async with client.stream("GET", path) as answer:
            begun.set()
            return sum([len(piece) async for piece in answer.aiter_raw()])

    async with tcp_server(send_slowly) as port, httpx.AsyncClient(base_url=impatient.url, timeout=30) as client:
        task = insert_service(world, port, unauthenticated=True)
        starts = [asyncio.Event(), asyncio.Event()]
        short = asyncio.create_task(download(client, f"/proxy/{task}/short", starts[0]))
        long = asyncio.create_task(download(client, f"/proxy/{task}/long", starts[1]))
        for begun in starts:
            await begun.wait()
        os.kill(impatient.process.pid, signal.SIGTERM)
        began = time.monotonic()
        assert await short == 10
        with pytest.raises(httpx.RemoteProtocolError):
            await long
        assert DRAIN_S <= time.monotonic() - began < 3 * DRAIN_S


async def test_an_api_that_ends_lets_handshakes_become_websockets(world: World, impatient: ApiProcess) -> None:
    asked = asyncio.Event()

    async def shake_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.set()
        await asyncio.sleep(SILENCE_S)
        key = next(line.split(": ")[1] for line in head.splitlines() if line.lower().startswith("sec-websocket-key"))
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        writer.write("\r\n".join([*lines, f"Sec-WebSocket-Accept: {accept_key(key)}", "", ""]).encode())
        writer.write(b"\x81\x05hello")
        await reader.read()

    async with tcp_server(shake_slowly) as port, ClientSession(base_url=impatient.url) as session:
        task = insert_service(world, port, unauthenticated=True)
        opening = asyncio.create_task(session.ws_connect(f"/proxy/{task}/"))
        await asked.wait()
        os.kill(impatient.process.pid, signal.SIGTERM)
        socket = await opening
        assert await socket.receive_str(timeout=60) == "hello"
        assert (await socket.receive(timeout=20)).type is WSMsgType.CLOSED


async def test_a_handshake_without_an_end_is_refused_when_the_api_ends(world: World, impatient: ApiProcess) -> None:
    asked = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()

    async with tcp_server(say_nothing) as port, ClientSession(base_url=impatient.url) as session:
        task = insert_service(world, port, unauthenticated=True)
        opening = asyncio.create_task(session.ws_connect(f"/proxy/{task}/"))
        await asked.wait()
        os.kill(impatient.process.pid, signal.SIGTERM)
        with pytest.raises(WSServerHandshakeError) as refused:
            await opening
        assert refused.value.status == 503
