"""A receiver of webhooks that only counts, in a process of its own: ``python -m``.

Prints its port. ``/hook`` is taken, ``/hang`` is never answered; ``/seen?most=N`` says how many came to ``/hook``, how
many seconds lay between the first and the last of them, and forgets them when they are N.
"""

from __future__ import annotations

import asyncio
import time

import uvloop
from aiohttp import web


class Counter:
    def __init__(self) -> None:
        self.times: list[float] = []

    async def hook(self, request: web.Request) -> web.Response:
        await request.read()
        self.times.append(time.perf_counter())
        return web.Response(text="ok")

    async def hang(self, _: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def seen(self, request: web.Request) -> web.Response:
        times = self.times
        if len(times) >= int(request.query["most"]):
            self.times = []
        return web.json_response({"count": len(times), "seconds": times[-1] - times[0] if times else 0.0})


async def main() -> None:
    counter = Counter()
    app = web.Application()
    app.router.add_post("/hook", counter.hook)
    app.router.add_post("/hang", counter.hang)
    app.router.add_get("/seen", counter.seen)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
