"""A server that stops still answers whoever connected before, and waits for nobody who says nothing."""

from __future__ import annotations

import asyncio

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
