"""A receiver of webhooks: keeps what it was sent, and answers as a test wants it to."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received], Awaitable[web.Response]]


async def take(_: Received) -> web.Response:
    return web.Response(text="ok")


@dataclass
class WebhookReceiver:
    port: int = 0
    answer: Answer = take
    received: list[Received] = field(default_factory=list)
    """Everything that came, also what was refused."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def events(self) -> list[Any]:
        return [each.json for each in self.received]

    def times(self) -> Counter[str]:
        """How often each event came, by its id."""
        return Counter(event["event_id"] for event in self.events)

    async def handle(self, request: web.Request) -> web.Response:
        received = Received(request.path, dict(request.headers), await request.read())
        self.received.append(received)
        return await self.answer(received)


async def hang(_: Received) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def webhook_receiver(
    answer: Answer = take, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[WebhookReceiver]:
    """At an address of this machine, on a free port unless one is named, for the duration of the block."""
    receiver = WebhookReceiver(answer=answer)
    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", receiver.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()
