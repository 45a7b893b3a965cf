"""The same application behind a real HTTP server: chunks, broken connections, bodies nobody reads."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest

from libs.errors import Unauthenticated, Unavailable
from services.api.http.decoding.upload_memory import UploadMemory
from tests.harness.no_tls import NO_TLS
from tests.harness.serving import serving_http
from tests.integration.api.http.service import World, application

USER = {"authorization": "Bearer hans"}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def address(world: World) -> AsyncIterator[tuple[str, int]]:
    async with serving_http(application(world)) as address:
        yield address


@pytest.fixture
async def client(address: tuple[str, int]) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://{address[0]}:{address[1]}", headers=USER, timeout=30, verify=NO_TLS
    ) as client:
        yield client


async def test_streams_are_chunked_and_each_batch_arrives_at_once(client: httpx.AsyncClient, world: World) -> None:
    async with asyncio.timeout(10), client.stream("GET", "/api/v1/follow") as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        first = await anext(answer.aiter_lines())
        assert first == '{"result":{"number":1,"size":"0","text":"","caller":""}}'
        assert not world.released.is_set()
    await asyncio.wait_for(world.released.wait(), 10)  # the follower left, so its generator was closed


SILENCE = [
    ({"accept-encoding": "gzip"}, b"\x00\x00\x00\xff\xff"),
    ({"accept-encoding": "identity", "accept": "application/x-ndjson"}, b"\n"),
]


@pytest.mark.parametrize(("headers", "nothing"), SILENCE, ids=["gzip", "lines"])
@pytest.mark.parametrize("path", ["/api/v1/follow", "/api/v1/follow-nothing"])
async def test_a_silent_stream_sends_what_nobody_reads(
    world: World, path: str, headers: dict[str, str], nothing: bytes
) -> None:
    """Also before its first line, when proxies still wait for the status."""
    async with serving_http(application(world, silence_s=0.05)) as (host, port):
        url = f"http://{host}:{port}"
        async with (
            httpx.AsyncClient(base_url=url, headers=USER, timeout=30, verify=NO_TLS) as client,
            client.stream("GET", path, headers=headers) as answer,
        ):
            raw = b""
            async for piece in answer.aiter_raw():
                raw += piece
                if raw.count(nothing) >= 4:
                    break
    text = zlib.decompressobj(31).decompress(raw).decode() if headers["accept-encoding"] == "gzip" else raw.decode()
    first = ['{"result":{"number":1,"size":"0","text":"","caller":""}}'] if path == "/api/v1/follow" else []
    assert [line for line in text.split("\n") if line] == first


async def test_clients_that_know_of_no_empty_lines_get_none(world: World) -> None:
    headers = {**USER, "accept-encoding": "identity"}
    async with (
        serving_http(application(world, silence_s=0.01, recheck_interval_s=0.05)) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers, timeout=30, verify=NO_TLS) as client,
    ):
        following = asyncio.create_task(client.get("/api/v1/follow"))
        await world.held.wait()
        world.refused = Unavailable("bus")
        for _ in range(3):
            await world.refusals.get()
        world.refused = Unauthenticated("invalid credentials")
        first, last, end = (await following).text.split("\n")
    assert (first[:10], last[:9], end) == ('{"result":', '{"error":', "")


async def test_a_long_poll_ends_with_its_client(client: httpx.AsyncClient, world: World) -> None:
    polling = asyncio.create_task(client.get("/api/v1/poll"))
    await asyncio.wait_for(world.held.wait(), 10)
    polling.cancel()
    await asyncio.wait_for(world.released.wait(), 10)


async def test_a_download_that_breaks_off_does_not_look_complete(client: httpx.AsyncClient) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/download/late")


async def test_bodies_without_announced_length_are_limited_too(client: httpx.AsyncClient, world: World) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    answer = await client.post("/api/v1/echoes", content=pieces())
    assert answer.status_code == 400
    assert "larger than 10000 bytes" in answer.text
    assert world.bodies_read == 0


async def test_a_body_that_breaks_off_reaches_no_handler(address: tuple[str, int], world: World) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(
        b"POST /api/v1/echoes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer hans\r\ncontent-length: 100\r\n\r\n{"
    )
    await writer.drain()
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    assert world.bodies_read == 0


async def test_the_connection_stays_usable_after_errors(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        assert (await client.post("/api/v1/echoes", content=b"{")).status_code == 400
        assert (await client.request("DELETE", "/api/v1/echoes/1", content=b"unread " * 1000)).status_code == 200
        assert (await client.get("/api/v1/echoes/%00")).status_code == 400
        assert (await client.get("/api/v1/echoes/7")).json()["number"] == 7


async def test_answers_to_pipelined_requests_come_whole_and_in_order(address: tuple[str, int]) -> None:
    reader, writer = await asyncio.open_connection(*address)
    paths = ["echoes/1", "nowhere", "echoes/2"]
    head = "GET /api/v1/{} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer hans\r\n{}\r\n"
    requests = [head.format(path, "" if path != paths[-1] else "Connection: close\r\n") for path in paths]
    writer.write("".join(requests).encode())
    answer = await asyncio.wait_for(reader.read(), 10)  # to the end: the last one asked for it
    writer.close()
    assert re.findall(rb"HTTP/1.1 (\d+) ", answer) == [b"200", b"501", b"200"]
    assert answer.count(b'"number":') == 2


async def test_uploads_that_do_not_fit_into_memory_are_asked_to_come_again(world: World) -> None:
    uploads = UploadMemory(1000)
    async with (
        serving_http(application(world, uploads=uploads)) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=USER, timeout=30, verify=NO_TLS) as client,
    ):
        answer = await client.post("/api/v1/password", content=b" " * 1_000_000 + b'"x"')
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert (await client.post("/api/v1/password", content=b'"x"')).json()["text"] == "x"
    assert uploads.free_bytes == 1000
