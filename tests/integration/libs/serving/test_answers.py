"""Everybody gets the answers that are owed, in order, whatever else they send or stop sending."""

from __future__ import annotations

import asyncio

from tests.harness.serving import serving_http
from tests.integration.libs.serving.talk import GET, Application, connected, statuses

NONSENSE = b"nonsense\r\n\r\n"


async def test_who_closes_his_side_gets_his_answer() -> None:
    application = Application()
    async with serving_http(application) as address, connected(address) as client:
        await client.say(GET % b"held")
        client.say_no_more()
        await asyncio.wait_for(application.held.wait(), 20)
        application.release.set()
        answer = await client.hear_all()
        assert statuses(answer) == [200]
        assert answer.endswith(b"/held 0\n")


async def test_who_asks_several_times_and_closes_his_side_gets_all_answers() -> None:
    application = Application()
    async with serving_http(application) as address, connected(address) as client:
        await client.say(b"".join(GET % path for path in (b"held", b"a", b"b")))
        client.say_no_more()
        await asyncio.wait_for(application.held.wait(), 20)
        application.release.set()
        assert statuses(await client.hear_all()) == [200, 200, 200]
        assert application.served == ["/held", "/a", "/b"]


async def test_a_request_that_breaks_off_takes_no_answer_from_those_before_it() -> None:
    application = Application()
    async with serving_http(application) as address, connected(address) as client:
        await client.say((GET % b"held") + b"POST /cut HTTP/1.1\r\ncontent-length: 10\r\n\r\nabc")
        client.say_no_more()
        await asyncio.wait_for(application.held.wait(), 20)
        application.release.set()
        assert statuses(await client.hear_all()) == [200]
        assert application.served == ["/held"]


async def test_a_refusal_comes_after_the_answers_before_it() -> None:
    application = Application()
    async with serving_http(application) as address, connected(address) as client:
        await client.say((GET % b"held") + (GET % b"next") + NONSENSE)
        await asyncio.wait_for(application.held.wait(), 20)
        application.release.set()
        client.say_no_more()
        answer = await client.hear_all()
        assert statuses(answer) == [200, 200, 400]
        assert b"/held 0\n" in answer
        assert answer.endswith(b"Invalid HTTP request received.")


async def test_a_broken_body_ends_its_request_and_no_other() -> None:
    application = Application()
    broken = b"POST /broken HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + NONSENSE
    async with serving_http(application) as address, connected(address) as client:
        await client.say((GET % b"held") + broken)
        await asyncio.wait_for(application.held.wait(), 20)
        application.release.set()
        client.say_no_more()
        assert statuses(await client.hear_all()) == [200, 400]
        assert application.served == ["/held"]


async def test_as_many_requests_as_somebody_likes_are_answered_in_order() -> None:
    application = Application()
    paths = [b"%d" % number for number in range(3000)]
    async with serving_http(application) as address, connected(address) as client:
        sending = asyncio.create_task(client.say((GET % b"held") + b"".join(GET % path for path in paths)))
        await asyncio.wait_for(application.held.wait(), 20)
        application.release.set()
        await sending
        client.say_no_more()
        assert statuses(await client.hear_all()) == [200] * 3001
        assert application.served == ["/held", *(f"/{path.decode()}" for path in paths)]


async def test_what_follows_a_request_waits_in_the_network_while_it_is_answered() -> None:
    application = Application()
    async with serving_http(application) as address, connected(address) as client, connected(address) as other:
        await client.say((GET % b"wait") + b"POST / HTTP/1.1\r\ncontent-length: 100000000\r\n\r\n")
        await asyncio.wait_for(application.held.wait(), 20)
        sending = asyncio.create_task(client.say(b"x" * 50_000_000))
        for _ in range(300):
            await other.say(GET % b"other")
            await other.hear(b"/other 0\n")
        assert not sending.done()
        sending.cancel()


async def test_who_leaves_ends_what_waits_for_it() -> None:
    application = Application()
    async with serving_http(application) as address, connected(address) as client:
        await client.say(GET % b"wait")
        await asyncio.wait_for(application.held.wait(), 20)
        client.leave()
        await asyncio.wait_for(application.left.wait(), 20)


async def test_a_wish_for_another_protocol_is_passed_over() -> None:
    application = Application()
    wish = b"GET /%s HTTP/1.1\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n\r\n"
    async with serving_http(application) as address, connected(address) as client:
        await client.say((wish % b"a") + (wish % b"b"))
        await client.hear(b"/b 0\n")
        for byte in wish % b"c":
            await client.say(bytes([byte]))
        await client.hear(b"/c 0\n")
        assert application.served == ["/a", "/b", "/c"]
