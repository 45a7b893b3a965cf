"""The forward proxy, driven by the library of buckets and by bytes on a socket."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from libs.outbound import forward_proxy
from libs.outbound.destinations import Authority, Destinations, destinations
from libs.outbound.forward_proxy import ForwardProxy, Passage, open_forward_proxy

LOOPBACK = destinations(("127.0.0.0/8", "::1"))
VARIABLES = [name for each in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (each, each.upper())]


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def proxy() -> AsyncIterator[ForwardProxy]:
    async with open_forward_proxy() as opened:
        yield opened


class Server:
    """Answers the first bytes of every connection with ``answer``, and then sends back what comes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.port = 0
        self.seen: list[bytes] = []

    async def take(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        while data := await reader.read(1000):
            self.seen.append(data)
            writer.write(data)
        writer.close()


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[Server]:
    found = Server(answer)
    server = await asyncio.start_server(found.take, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


async def asked(
    passage: Passage, first: str, *headers: str, token: str | None = None
) -> tuple[StreamReader, StreamWriter]:
    """A connection to the proxy on which a request was sent."""
    known = b64encode(f"resolute:{token or passage.token}".encode()).decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(passage.url).port)
    lines = (first, "Host: h", f"Proxy-Authorization: Basic {known}", *headers)
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    return reader, writer


async def status_of(passage: Passage, first: str, *headers: str, token: str | None = None) -> bytes:
    reader, writer = await asked(passage, first, *headers, token=token)
    line = await reader.readline()
    writer.close()
    return line.strip()


async def test_it_serves_nobody_without_a_token_of_its_own(proxy: ForwardProxy) -> None:
    async with serving(b"") as server:
        passage = proxy.passage(LOOPBACK)
        target = f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"
        assert await status_of(passage, target, token="guessed") == b"HTTP/1.1 407 Proxy Authentication Required"
        gone = proxy.passage(LOOPBACK)
        token = gone.token
        del gone
        assert await status_of(passage, target, token=token) == b"HTTP/1.1 407 Proxy Authentication Required"
        assert await status_of(passage, target) == b"HTTP/1.1 200 Connection established"
    assert len(server.seen) <= 1


@pytest.mark.parametrize(
    "first",
    [
        "CONNECT 127.0.0.1:{port} HTTP/1.1",
        "CONNECT localhost:{port} HTTP/1.1",
        "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1",
        "GET http://127.0.0.1:{port}/x HTTP/1.1",
        "GET http://0:{port}/x HTTP/1.1",
    ],
)
async def test_private_addresses_are_refused(proxy: ForwardProxy, first: str) -> None:
    async with serving(b"") as server:
        passage = proxy.passage(Destinations())
        assert await status_of(passage, first.format(port=server.port)) == b"HTTP/1.1 403 Forbidden"
        assert passage.refused is not None
        assert passage.refused.port == server.port
    assert server.seen == []


@pytest.mark.parametrize(
    ("first", "header"),
    [
        ("nonsense", ""),
        ("GET / HTTP/1.1", ""),
        ("GET ftp://h/ HTTP/1.1", ""),
        ("CONNECT h HTTP/1.1", ""),
        ("CONNECT h:99999 HTTP/1.1", ""),
        ("PUT http://127.0.0.1/ HTTP/1.1", "Transfer-Encoding: chunked"),
        ("PUT http://127.0.0.1/ HTTP/1.1", "Content-Length: some"),
    ],
)
async def test_what_is_no_request_is_refused(proxy: ForwardProxy, first: str, header: str) -> None:
    assert await status_of(proxy.passage(LOOPBACK), first, header) == b"HTTP/1.1 400 Bad Request"


async def test_a_tunnel_carries_bytes_both_ways_until_a_side_ends(proxy: ForwardProxy) -> None:
    async with serving(b"hello") as server:
        passage = proxy.passage(LOOPBACK)
        reader, writer = await asked(passage, f"CONNECT localhost:{server.port} HTTP/1.1")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(b"first\r\n\r\n")
        assert await reader.readexactly(5) == b"hello"
        large = bytes(range(256)) * 8000
        writer.write(large)
        assert await reader.readexactly(len(large)) == large
        writer.close()


async def test_a_request_is_passed_on_without_what_is_for_the_proxy(proxy: ForwardProxy) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n\r\n") as server:
        passage = proxy.passage(LOOPBACK)
        first = f"PUT http://localhost:{server.port}/a/b?c=d HTTP/1.1"
        reader, writer = await asked(passage, first, "X: y", "Content-Length: 4", "Connection: keep-alive")
        writer.write(b"body")
        assert await reader.readexactly(23) == b"HTTP/1.1 200 OK\r\n\r\nbody"
        writer.close()
    head = b"PUT /a/b?c=d HTTP/1.1\r\nHost: h\r\nX: y\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
    assert server.seen == [head, b"body"]


async def test_it_goes_out_through_the_proxy_of_the_administrator(
    proxy: ForwardProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n\r\n") as outer, serving(b"HTTP/1.1 201 Made\r\n\r\n") as direct:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{outer.port}")
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{outer.port}")
        monkeypatch.setenv("NO_PROXY", "direct.example,127.0.0.0/8")
        passage = proxy.passage(LOOPBACK)
        assert await status_of(passage, "CONNECT only-there.invalid:443 HTTP/1.1") == b"HTTP/1.1 200 OK"
        assert await status_of(passage, "GET http://only-there.invalid/x HTTP/1.1") == b"HTTP/1.1 200 OK"
        assert await status_of(passage, f"GET http://127.0.0.1:{direct.port}/ HTTP/1.1") == b"HTTP/1.1 201 Made"
        for private in ("CONNECT 10.0.0.1:443", "GET http://169.254.169.254/", "CONNECT localhost:443"):
            refused = proxy.passage(Destinations())
            assert await status_of(refused, f"{private} HTTP/1.1") == b"HTTP/1.1 403 Forbidden"
    credentials = b64encode(b"me:secret")
    assert outer.seen == [
        b"CONNECT only-there.invalid:443 HTTP/1.1\r\nHost: only-there.invalid:443\r\n"
        b"Proxy-Authorization: Basic " + credentials + b"\r\n\r\n",
        b"GET http://only-there.invalid:80/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    ]


async def test_a_server_that_is_away_is_no_answer(proxy: ForwardProxy) -> None:
    async with serving(b"") as server:
        port = server.port
    passage = proxy.passage(LOOPBACK)
    assert await status_of(passage, f"CONNECT 127.0.0.1:{port} HTTP/1.1") == b""
    assert passage.refused is None


async def test_further_addresses_of_a_name_are_tried(proxy: ForwardProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolved(_to: Authority) -> list[str]:
        return ["10.0.0.1", "127.0.0.2", "127.0.0.1"]

    monkeypatch.setattr(forward_proxy, "resolve", resolved)
    async with serving(b"") as server:
        passage = proxy.passage(LOOPBACK)
        first = f"CONNECT of-several.example:{server.port} HTTP/1.1"
        assert await status_of(passage, first) == b"HTTP/1.1 200 Connection established"
