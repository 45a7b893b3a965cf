"""More connections than there is room for are told to come again, and the log says so."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from libs.serving.limits import HttpLimits
from tests.harness.serving import serving_http
from tests.integration.libs.serving.talk import GET, Application, connected, statuses


async def test_too_many_connections_are_told_to_come_again_and_logged() -> None:
    application = Application()
    with capture_logs() as logged:
        async with serving_http(application, HttpLimits(connections=10)) as address:
            async with connected(address) as first:
                others = [connected(address) for _ in range(9)]
                for other in others:
                    client = await other.__aenter__()
                    await client.say(GET % b"x")
                    await client.hear(b"/x 0\n")
                async with connected(address) as late, connected(address) as later:
                    await late.say(GET % b"late")
                    assert b"retry-after: 1" in await late.hear_all()
                    assert await later.hear_all() == b""
                await first.say(GET % b"first")
                assert statuses(await first.hear(b"/first 0\n")) == [200]
                for other in others:
                    await other.__aexit__(None, None, None)
            application.held.clear()

            async def served() -> bool:
                async with connected(address) as again:
                    await again.say(GET % b"again")
                    return statuses(await again.hear(b"\r\n")) == [200]

            async with asyncio.timeout(20):
                while not await served():
                    pass
    told = [entry for entry in logged if entry["event"] == "http.connection_limit"]
    assert [(entry["log_level"], entry["limit"]) for entry in told] == [("warning", 10)]
