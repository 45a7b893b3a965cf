"""A configuration as large as nobody needs is refused, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import json

import httpx

from tests.bench.cpu import cpu_s
from tests.harness.no_tls import NO_TLS
from tests.integration.api.world import World

NESTED = "[" + "[[[]]]," * 1_250_000 + "[]]"
"""Ten megabytes, five million values."""


# Other work of the machine may hold an answer up for seconds; what the api itself does before it gives one does not
# depend on that.
async def test_others_are_answered_while_ten_megabytes_of_lists_are_read(world: World) -> None:
    text = f'{{"a": {NESTED}}}'
    requests = {
        "/api/v1/experiments": json.dumps({"config": text}),
        "/api/v1/notebooks": f'{{"config": {text}}}',
    }
    with world.api("large") as api:
        headers = {"Authorization": f"Bearer {api.token('admin')}"}
        async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=120, verify=NO_TLS) as client:
            for path, body in requests.items():
                longest = 0.0
                refusal = asyncio.create_task(client.post(path, content=body.encode()))
                while not refusal.done():
                    began_s = cpu_s(api.process.pid)
                    assert (await client.get("/api/v1/me")).status_code == 200
                    longest = max(longest, cpu_s(api.process.pid) - began_s)
                    await asyncio.sleep(0.01)
                reply = refusal.result()
                assert (reply.status_code, "200000 values" in reply.text) == (400, True), (path, reply.text[:300])
                assert longest < 2.5, path
