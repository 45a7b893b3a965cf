"""A head is bounded before anybody knows whose request it is, in bytes and in time; so is the time of a body."""

from __future__ import annotations

import asyncio

import pytest

from libs.serving.limits import HttpLimits
from tests.harness.serving import serving_http
from tests.integration.libs.serving.talk import Application, connected, statuses

LIMITS = HttpLimits(line_bytes=2048, head_bytes=8192, headers=20)
QUICK = HttpLimits(head_s=0.05, body_s=0.05, linger_s=0.05)
MUCH = 64 * 1024

ENDLESS = [
    pytest.param(b"GET /" + b"a" * MUCH, 414, id="request line"),
    pytest.param(b"GET / HTTP/1.1\r\nx: " + b"a" * MUCH, 431, id="header"),
    pytest.param(b"GET / HTTP/1.1\r\n" + b"a" * MUCH, 431, id="name of a header"),
    pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 22, 431, id="many headers"),
    pytest.param(b"GET / HTTP/1.1\r\n" + (b"a: " + b"b" * 1000 + b"\r\n") * 10, 431, id="long headers"),
    pytest.param(b"\r\n" * MUCH, 431, id="lines before a request"),
    pytest.param(
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"a" * MUCH, 431, id="extension of a chunk"
    ),
    pytest.param(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"a" * MUCH, 431, id="trailer"),
    pytest.param(
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 22, 431, id="many trailers"
    ),
    pytest.param(b"CONNECT nowhere HTTP/1.1\r\n\r\n", 400, id="no request at all"),
]


@pytest.mark.parametrize(("head", "status"), ENDLESS)
async def test_what_has_no_end_is_refused_before_it_ends(head: bytes, status: int) -> None:
    application = Application()
    async with serving_http(application, LIMITS) as address, connected(address) as client:
        await client.say(head)
        assert statuses(await client.hear(b"\r\n")) == [status]
        assert application.served == []


async def test_a_refusal_can_be_read_by_who_still_sends() -> None:
    async with serving_http(Application(), LIMITS) as address, connected(address) as client:
        await client.say(b"GET / HTTP/1.1\r\nx: ")
        for _ in range(200):
            await client.say(b"a" * MUCH)
        client.say_no_more()
        answer = await client.hear_all()
        assert statuses(answer) == [431]
        assert answer.endswith(b"A header is too long.")


async def test_heads_of_any_pieces_within_the_bounds_are_taken() -> None:
    application = Application()
    head = b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\n" + (b"x: " + b"b" * 1000 + b"\r\n") * 5 + b"\r\n"
    async with serving_http(application, LIMITS) as address, connected(address) as client:
        for size in (1, 7, len(head)):
            for start in range(0, len(head), size):
                await client.say(head[start : start + size])
            assert statuses(await client.hear(b" 0\n")) == [200]


async def test_headers_behind_a_body_change_nothing() -> None:
    application = Application()
    request = b"POST /held HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nauthorization: Bearer x\r\n\r\n"
    async with serving_http(application, LIMITS) as address, connected(address) as client:
        await client.say(request)
        await asyncio.wait_for(application.held.wait(), 20)
        assert application.headers == [(b"transfer-encoding", b"chunked")]


@pytest.mark.parametrize("head", [b"G", b"GET / HTTP/1.1\r\nx: "], ids=["request line", "header"])
async def test_a_head_has_to_come_in_time(head: bytes) -> None:
    async with serving_http(Application(), QUICK) as address, connected(address) as client:
        await client.say(head)
        assert statuses(await client.hear_all()) == [408]


async def test_a_connection_that_asks_nothing_is_closed() -> None:
    async with serving_http(Application(), QUICK) as address, connected(address) as client:
        assert await client.hear_all() == b""


async def test_a_body_has_to_come_in_time() -> None:
    application = Application()
    async with serving_http(application, QUICK) as address, connected(address) as client:
        await client.say(b"POST /late HTTP/1.1\r\ncontent-length: 10\r\n\r\nabc")
        assert statuses(await client.hear_all()) == [408]
        await asyncio.wait_for(application.left.wait(), 20)
        assert application.served == []


async def test_a_body_that_nobody_reads_does_not_hide_the_answer_and_is_not_read_for_ever() -> None:
    async with serving_http(Application(), QUICK) as address, connected(address) as client:
        await client.say(b"POST /unread HTTP/1.1\r\ncontent-length: 1000000\r\n\r\nabc")
        answer = await client.hear_all()
        assert statuses(answer) == [200]


async def test_a_slow_application_costs_its_client_nothing() -> None:
    application = Application()
    async with serving_http(application, QUICK) as address, connected(address) as client:
        await client.say(b"POST /held HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc")
        await asyncio.wait_for(application.held.wait(), 20)
        async with connected(address) as other:  # whose patience ends after that of the first would have
            assert await other.hear_all() == b""
        application.release.set()
        assert statuses(await client.hear(b"/held 3\n")) == [200]
