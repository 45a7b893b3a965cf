"""Websockets through the proxy, to servers that speak it and to plain TCP."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import httpx
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from services.api.proxy.requests.pool import KEEP_ALIVE_S
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.harness.waiting import eventually
from tests.integration.api.proxy.servers import echo, http_server, tcp_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import World

JUPYTER = "v1.kernel.websocket.jupyter.org"


async def receive_bytes(socket: ClientWebSocketResponse, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += await socket.receive_bytes(timeout=60)
    return got


async def test_a_websocket_is_between_client_and_task(world: World, session: ClientSession) -> None:
    async with http_server() as port:
        task = insert_service(world, port)
        target = f"/proxy/{task}/api%2Fkernels/websocket?session_id=1"
        async with session.ws_connect(target, protocols=("other", JUPYTER), compress=15) as socket:
            assert socket.protocol == JUPYTER
            told = await socket.receive_json(timeout=60)
            assert told["target"] == target
            assert "authorization" not in told["headers"]
            assert told["headers"]["x-forwarded-for"] == "127.0.0.1"
            large = "x" * 3_000_000
            await socket.send_str(large)
            assert (await socket.receive_str(timeout=60)) == large
            await socket.ping()
            await socket.send_bytes(b"1")
            assert await socket.receive_bytes(timeout=60) == b"1"


async def test_a_refused_websocket_is_an_answer_like_others(api: ApiProcess, world: World, token: str) -> None:
    shake = {
        "Authorization": f"Bearer {token}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    async with http_server() as port, httpx.AsyncClient(base_url=api.url, timeout=60, verify=NO_TLS) as client:
        task = insert_service(world, port)
        for _ in range(2):  # on one connection: what follows the answer is a request to us, not to the task
            refusal = await client.get(f"/proxy/{task}/websocket?refuse=1", headers=shake)
            assert (refusal.status_code, refusal.json()) == (418, {"message": "not for you"})
        assert (await client.get("/info")).json()["version"]
        assert (await client.get(f"/proxy/{task}x/websocket", headers=shake)).status_code == 404
        del shake["Authorization"]
        assert (await client.get(f"/proxy/{task}/websocket", headers=shake)).status_code == 401


async def test_a_silent_websocket_is_pinged(world: World) -> None:
    async with http_server() as port:
        task = insert_service(world, port)
        with world.api("pinging", proxy={"ping_interval_s": 0.1}) as api:
            headers = {"Authorization": f"Bearer {api.token('determined')}"}
            async with (
                ClientSession(base_url=api.url, headers=headers) as session,
                session.ws_connect(f"/proxy/{task}/websocket", autoping=False) as socket,
            ):
                assert (await socket.receive(timeout=60)).type is WSMsgType.TEXT
                for _ in range(3):
                    ping = await socket.receive(timeout=60)
                    assert ping.type is WSMsgType.PING
                    await socket.pong(ping.data)  # which the server has not asked for
                await socket.send_str("still there")
                while (message := await socket.receive(timeout=60)).type is WSMsgType.PING:
                    pass
                assert message.data == "still there"


async def test_bytes_go_to_tcp_and_back(world: World, session: ClientSession) -> None:
    async with tcp_server(echo) as port:
        task = insert_service(world, port, proxy_tcp=True)
        async with session.ws_connect(f"/proxy/{task}/", max_msg_size=0) as socket:
            for size in (1, 200, 70_000, 1_000_000):
                sent = os.urandom(size)
                await socket.send_bytes(sent)
                assert await receive_bytes(socket, size) == sent
            await socket.send_str("is ignored")
            await socket.ping(b"ping")
            await socket.send_bytes(b"last")
            assert await receive_bytes(socket, 4) == b"last"


async def test_the_end_of_tcp_closes_the_websocket(world: World, session: ClientSession) -> None:
    async def say_goodbye(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"goodbye")

    async with tcp_server(say_goodbye) as port:
        task = insert_service(world, port, proxy_tcp=True)
        async with session.ws_connect(f"/proxy/{task}/") as socket:
            assert await socket.receive_bytes(timeout=60) == b"goodbye"
            assert (await socket.receive(timeout=60)).type is WSMsgType.CLOSE
            assert socket.close_code == 1000


async def test_last_words_follow_the_clients_goodbye(world: World, api: ApiProcess) -> None:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = 0
        while piece := await reader.read(65536):
            size += len(piece)
        await asyncio.sleep(0.3)
        writer.write(b"%d bytes" % size)

    async with tcp_server(count) as port:
        task = insert_service(world, port, proxy_tcp=True, unauthenticated=True)
        reader, writer = await open_websocket(api, task)
        writer.write(b"\x82\x83\0\0\0\0abc" + b"\x88\x82\0\0\0\0\x03\xe8")
        async with asyncio.timeout(5):
            rest = await reader.read()
    assert rest == b"\x82\x073 bytes" + b"\x88\x02\x03\xe8"
    writer.close()


async def open_websocket(api: ApiProcess, task: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    writer.write(
        f"GET /proxy/{task}/ HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


MALFORMED = {
    "not masked": b"\x82\x01a",
    "unknown opcode": b"\x83\x80\0\0\0\0",
    "reserved bit": b"\xc2\x80\0\0\0\0",
    "too large": b"\x82\xff" + (2**40).to_bytes(8, "big") + b"\0\0\0\0",
}


@pytest.mark.parametrize("frame", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_frame_closes_the_websocket(world: World, api: ApiProcess, frame: bytes) -> None:
    async with tcp_server(echo) as port:
        task = insert_service(world, port, proxy_tcp=True, unauthenticated=True)
        reader, writer = await open_websocket(api, task)
        writer.write(frame)
        async with asyncio.timeout(5):
            assert (await reader.read())[:1] == b"\x88"
        writer.close()


async def test_a_tcp_service_wants_a_websocket(world: World, api: ApiProcess, session: ClientSession) -> None:
    task = insert_service(world, 1, proxy_tcp=True)
    async with session.get(f"/proxy/{task}/") as answer:
        assert answer.status == 400
        assert "websocket" in (await answer.json())["message"]
    with pytest.raises(WSServerHandshakeError) as refusal:
        await session.ws_connect(f"/proxy/{task}/")
    assert refusal.value.status == 502  # nobody listens there


async def test_pages_of_other_sites_may_not_connect(world: World, api: ApiProcess, token: str) -> None:
    here = api.url
    async with tcp_server(echo) as tcp, http_server() as http, ClientSession(base_url=here) as session:
        shell = insert_service(world, tcp, proxy_tcp=True, unauthenticated=True)
        notebook = insert_service(world, http)
        cookie = {"Cookie": f"auth={token}"}
        for path, origin, status in (
            (f"/proxy/{shell}/", "https://evil.example", 403),
            (f"/proxy/{shell}/", "null", 403),
            (f"/proxy/{shell}/", here, 101),
            (f"/proxy/{notebook}/websocket", "https://evil.example", 403),
            (f"/proxy/{notebook}/websocket", here, 101),
        ):
            shake = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
            headers = {**cookie, **shake, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": origin}
            async with session.get(path, headers=headers) as answer:
                assert answer.status == status, (path, origin)


async def test_whoever_loses_their_rights_loses_their_connections(world: World) -> None:
    async with http_server() as port:
        task = insert_service(world, port)
        with world.api("strict", proxy={"recheck_interval_s": 0.2}) as api:
            headers = {"Authorization": f"Bearer {api.token('determined')}"}
            async with (
                ClientSession(base_url=api.url, headers=headers) as session,
                session.ws_connect(f"/proxy/{task}/websocket") as socket,
            ):
                await socket.receive_json(timeout=60)
                async with session.post("/api/v1/auth/logout") as answer:
                    assert answer.status == 200
                assert (await socket.receive(timeout=60)).type is WSMsgType.CLOSED


async def test_an_api_that_ends_lets_websockets_live_for_a_while(world: World) -> None:
    async with tcp_server(echo) as port:
        task = insert_service(world, port, proxy_tcp=True, unauthenticated=True)
        with world.api("ending", proxy={"drain_s": 3}) as api:
            async with ClientSession(base_url=api.url) as session, session.ws_connect(f"/proxy/{task}/") as socket:
                os.kill(api.process.pid, signal.SIGTERM)
                began = time.monotonic()
                await eventually(lambda: refuses_connections(api), what="it takes no new connections")
                await socket.send_bytes(b"still here")
                assert await socket.receive_bytes(timeout=60) == b"still here"
                assert (await socket.receive(timeout=20)).type is WSMsgType.CLOSED
                assert time.monotonic() - began >= 3


async def refuses_connections(api: ApiProcess) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    except ConnectionError:
        return True
    writer.close()
    return False


async def test_nothing_stays_open_behind_connections_that_ended(world: World, api: ApiProcess, token: str) -> None:
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{api.process.pid}/fd"))

    headers = {"Authorization": f"Bearer {token}"}
    async with tcp_server(echo) as tcp, http_server() as http:
        shell, notebook = insert_service(world, tcp, proxy_tcp=True), insert_service(world, http)

        async def connect(number: int) -> None:
            async with ClientSession(base_url=api.url, headers=headers) as session:
                path = f"/proxy/{shell}/" if number % 2 else f"/proxy/{notebook}/websocket"
                socket = await session.ws_connect(path)
                async with session.get(f"/proxy/{notebook}/many?bytes=10000000") as answer:
                    await answer.content.read(100)
                if number % 3:
                    await socket.close()  # or the session is closed under it

        counts = []
        for _ in range(2):  # the first time the api also connects to its database as often as it ever will
            await asyncio.gather(*(connect(number) for number in range(40)))
            await asyncio.sleep(2 * KEEP_ALIVE_S)
            counts.append(descriptors())
    assert counts[1] <= counts[0]
    assert counts[1] < 40
