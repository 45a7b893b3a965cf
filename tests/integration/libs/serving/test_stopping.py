"""A server that stops still answers whoever connected before, and waits for nobody who says nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.serving import protocol
from tests.harness.serving import Address, serving_http
from tests.integration.libs.serving.talk import GET, Application, connected, statuses


async def accepts_nobody(address: Address) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection(*address)
            except ConnectionError:
                return
            writer.close()


@pytest.mark.parametrize("said_before", [b"", b"GET /", GET % b"first" + b"GET /"], ids=["nothing", "a part", "one"])
async def test_a_request_under_way_is_answered_and_ends_the_connection(
    said_before: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "FIRST_REQUEST_S", 60.0)  # not a matter of how fast this machine is
    stop, request = asyncio.Event(), GET % b"last"
    async with serving_http(Application(), stop=stop) as address, connected(address) as client:
        await client.say(said_before)
        async with connected(address) as other:  # who came later is served, so the first was accepted and heard
            await other.say(GET % b"other")
            await other.hear(b"/other 0\n")
        stop.set()
        await accepts_nobody(address)
        await client.say(request.removeprefix(b"GET /" if said_before else b""))
        answer = await client.hear_all()
    assert answer.endswith(b"/last 0\n")
    assert b"connection: close" in answer
    assert statuses(answer) == [200] * (2 if b"first" in said_before else 1)


async def test_nobody_who_says_nothing_is_waited_for_long() -> None:
    stop = asyncio.Event()
    async with serving_http(Application(), stop=stop) as address, connected(address) as client:
        stop.set()
        assert await client.hear_all() == b""


async def test_a_request_that_is_cut_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    stop, app = asyncio.Event(), Application()
    async with serving_http(app, stop=stop, grace_s=0) as address, connected(address) as client:
        await client.say(GET % b"held")
        await asyncio.wait_for(app.held.wait(), 20)
        stop.set()
        answer = await client.hear_all()
    assert statuses(answer) == [503]
    assert b"retry-after: 1\r\n" in answer
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_half_of_a_response_ends_with_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        await asyncio.Event().wait()

    async with serving_http(half, stop=stop, grace_s=0) as address, connected(address) as client:
        await client.say(GET % b"half")
        begun = await client.hear(b"\r\n\r\n1")
        stop.set()
        assert await client.hear_all() == b""
    assert statuses(begun) == [200]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
