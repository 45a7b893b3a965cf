"""HTTP through the proxy: what reaches a task, and what comes back."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.integration.api.proxy.servers import http_server, says, tcp_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import World

MIB = 2**20


@pytest.fixture(scope="module")
def token(api: ApiProcess) -> str:
    return api.token()


@pytest.fixture
async def client(api: ApiProcess, token: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=30, verify=NO_TLS) as client:
        yield client


async def test_a_request_reaches_the_task_as_it_was_sent(world: World, client: httpx.AsyncClient) -> None:
    async with http_server() as port:
        task = insert_service(world, port)
        target = f"/proxy/{task}/a%2Fb//c?x=%20y&x=2"
        answer = await client.request("PROPFIND", target, content=b"body", headers={"Accept-Encoding": "identity"})
    told = answer.json()
    headers = dict(told["headers"])
    assert (told["method"], told["target"], told["body"]) == ("PROPFIND", target, "body")
    assert headers["host"] == client.base_url.netloc.decode()
    assert headers["accept-encoding"] == "identity"
    assert headers["x-forwarded-for"] == headers["x-real-ip"] == "127.0.0.1"
    assert headers["x-forwarded-proto"] == "http"
    assert headers["content-length"] == "4"


async def test_credentials_of_the_platform_do_not_reach_the_task(world: World, client: httpx.AsyncClient) -> None:
    headers = {"Cookie": "mine=1; auth=secret; proxy_token=secret; other=2", "Grpc-Metadata-X-User-Token": "secret"}
    async with http_server() as port:
        task = insert_service(world, port)
        told = (await client.get(f"/proxy/{task}/", headers=headers)).json()
    assert "secret" not in str(told)
    assert "authorization" not in dict(told["headers"])
    assert dict(told["headers"])["cookie"] == "mine=1; other=2"


async def test_an_answer_comes_back_as_it_was_sent(world: World, client: httpx.AsyncClient) -> None:
    async with http_server() as port:
        task = insert_service(world, port)
        answer = await client.get(f"/proxy/{task}/cookies")
        unchanged = await client.get(f"/proxy/{task}/unchanged")
        head = await client.head(f"/proxy/{task}/anything")
        forbidden = await client.get(f"/proxy/{task}/forbidden")
    assert (answer.status_code, answer.headers["location"]) == (302, "elsewhere")
    of_task = f"Path=/proxy/{task}/"  # whatever the task says
    assert answer.headers.get_list("set-cookie") == [f"one=1; {of_task}", f"two=2; {of_task}"]
    assert "x-mine" not in answer.headers  # the task's connection says that it is for the next hop only
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (unchanged.status_code, unchanged.headers["etag"], unchanged.content) == (304, '"1"', b"")
    assert (head.status_code, head.content) == (200, b"")
    assert (forbidden.status_code, forbidden.json()) == (403, {"message": "no"})


async def test_large_bodies_go_through_both_ways(world: World, client: httpx.AsyncClient, api: ApiProcess) -> None:
    size = 200 * MIB
    piece = bytes(range(256)) * 4096
    expected = hashlib.sha256()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(size // len(piece)):
            expected.update(piece)
            yield piece

    async with http_server() as port:
        task = insert_service(world, port)
        await client.get(f"/proxy/{task}/")
        before = memory_of(api)
        sent = (await client.put(f"/proxy/{task}/hash", content=pieces())).json()
        received = hashlib.sha256()
        count = 0
        async with client.stream("GET", f"/proxy/{task}/many?bytes={size}") as answer:
            async for got in answer.aiter_raw():
                received.update(got)
                count += len(got)
        assert memory_of(api) - before < 50 * MIB
    assert sent == {"size": size, "hash": expected.hexdigest()}
    assert count == size
    assert received.hexdigest() == expected.hexdigest()


def memory_of(api: ApiProcess) -> int:
    """Resident bytes of the api."""
    with open(f"/proc/{api.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


async def test_an_answer_is_cut_for_the_client_where_the_task_cut_it(world: World, client: httpx.AsyncClient) -> None:
    async with tcp_server(says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")) as port:
        task = insert_service(world, port)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"/proxy/{task}/")


async def test_a_connection_that_the_task_closes_is_no_trouble(world: World, client: httpx.AsyncClient) -> None:
    connections = 0

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.read(1)  # and closes it when another request is there

    async with tcp_server(answer_once) as port:
        task = insert_service(world, port)
        answers = [await client.get(f"/proxy/{task}/") for _ in range(3)]
        assert [(answer.status_code, answer.text) for answer in answers] == [(200, "ok")] * 3
        assert connections == 3
        # What may have been done is not done again without being asked to.
        assert (await client.post(f"/proxy/{task}/")).status_code == 502
        assert connections == 3


GARBAGE = {
    "no http": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "an endless header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000,
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a header of control characters": b"HTTP/1.1 200 OK\r\nX\x01: 1\r\n\r\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_what_is_no_answer_is_a_bad_gateway(world: World, client: httpx.AsyncClient, garbage: bytes) -> None:
    async with tcp_server(says(garbage)) as port:
        task = insert_service(world, port)
        answer = await client.get(f"/proxy/{task}/")
        shake = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "a" * 24}
        upgrade = await client.get(f"/proxy/{task}/", headers=shake)
    for refusal in (answer, upgrade):
        assert refusal.status_code == 502, refusal.text
        assert refusal.json() == {"message": f"task {task} does not answer at its port {port} yet"}


async def test_a_client_that_vanishes_takes_its_request_along(world: World, api: ApiProcess, token: str) -> None:
    ended = asyncio.Event()

    async def read_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        ended.set()

    async with tcp_server(read_on) as port:
        task = insert_service(world, port)
        for request in ("PUT /proxy/%s/ HTTP/1.1\r\nContent-Length: 1000000\r\n", "GET /proxy/%s/ HTTP/1.1\r\n"):
            ended.clear()
            _, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
            writer.write(f"{request % task}Host: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode() + b"x" * 1000)
            await asyncio.sleep(0.2)
            writer.transport.abort()
            async with asyncio.timeout(10):
                await ended.wait()
