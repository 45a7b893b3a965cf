"""API servers that misbehave: one in front of a real one, and one that says what a test tells it to say."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

log = logging.getLogger(__name__)

Json = dict[str, Any]
Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request instead of the real server, or lets it pass with None."""


@asynccontextmanager
async def serving(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """URL of a server on a free port."""
    server = web.Server(handler)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        _, port = runner.addresses[0][:2]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class FaultyProxy:
    """Passes requests on, unless told otherwise."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession) -> None:
        self._upstream = upstream
        self._session = session
        self._watches: set[asyncio.Transport] = set()
        self.changes = 0
        """How many requests that change something are being passed on."""
        self.url = ""
        self.fault: Fault | None = None
        self.loses_answers = False
        """The server gets what is posted, and nobody gets its answer."""
        self.answered: Callable[[web.Request], None] = lambda _request: None
        """Told when the server has done what was asked, and nobody but us knows yet."""
        self.requests: list[tuple[float, str, str]] = []
        """Time, method and path with query of every request."""

    def drop_watches(self) -> int:
        """Cut every connection over which something is watched; returns how many."""
        watches, self._watches = self._watches, set()
        for transport in watches:
            transport.abort()
        return len(watches)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((asyncio.get_running_loop().time(), request.method, request.path_qs))
        is_change = request.method != "GET"
        self.changes += is_change
        try:
            return await self._pass_on(request)
        finally:
            self.changes -= is_change

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if self.fault is not None and (answer := await self.fault(request)) is not None:
            return answer
        headers = {key: value for key, value in request.headers.items() if key.lower() not in ("host", "connection")}
        body = await request.read()
        async with self._session.request(
            request.method, self._upstream + request.path_qs, headers=headers, data=body
        ) as upstream:
            self.answered(request)
            if self.loses_answers and request.method == "POST":
                await upstream.read()
                assert request.transport is not None
                request.transport.abort()
                raise web.HTTPBadGateway
            answer = web.StreamResponse(status=upstream.status, headers={"Content-Type": upstream.content_type})
            watched = request.transport if "watch=1" in request.query_string else None
            if isinstance(watched, asyncio.Transport):
                self._watches.add(watched)
            try:
                await answer.prepare(request)
                async for chunk in upstream.content.iter_any():
                    await answer.write(chunk)
                await answer.write_eof()
            except (ConnectionError, aiohttp.ClientError):
                log.info("somebody hung up: %s %s", request.method, request.path_qs)
            finally:
                if isinstance(watched, asyncio.Transport):
                    self._watches.discard(watched)
            return answer


@asynccontextmanager
async def faulty_proxy(kubeconfig: Path, directory: Path) -> AsyncIterator[tuple[FaultyProxy, Path]]:
    """A proxy in front of the cluster of a kubeconfig, and a kubeconfig that leads through it."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=0), timeout=timeout, read_bufsize=2**21
    ) as session:
        proxy = FaultyProxy(config["clusters"][0]["cluster"]["server"], session)
        async with serving(proxy.handle) as url:
            proxy.url = url
            config["clusters"][0]["cluster"] = {"server": url}
            path = directory / "proxied.yaml"
            path.write_text(yaml.safe_dump(config))
            yield proxy, path


def event(kind: str, item: Json) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def named(name: str, version: int, uid: str = "") -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version), "uid": uid or f"uid-{name}"}}
