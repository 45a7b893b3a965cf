"""Any ASGI application behind the HTTP server of the services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from libs.serving.limits import HttpLimits
from libs.serving.server import TlsServer, serve_http

Address = tuple[str, int]


@asynccontextmanager
async def serving_http(
    app: Callable[..., Any],
    limits: HttpLimits | None = None,
    stop: asyncio.Event | None = None,
    tls: TlsServer | None = None,
    *,
    grace_s: int = 5,
) -> AsyncIterator[Address]:
    """The address of ``app``, served while the block runs, or until ``stop`` is set in it.

    grace_s  how long requests may go on then
    """
    stop = stop or asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=grace_s)
    serving = asyncio.create_task(
        serve_http(
            config,
            host="127.0.0.1",
            port=0,
            stop=stop,
            listening=port.set_result,
            limits=limits or HttpLimits(),
            tls=tls,
        )
    )
    try:
        yield "127.0.0.1", await port
    finally:
        stop.set()
        await serving
