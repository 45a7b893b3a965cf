"""Serves ``/healthz``, ``/readyz`` and ``/metrics`` of a service, on a port that nobody but its operators has to reach.

``/healthz`` says whether the service is alive: whether its event loop takes its turns. ``/readyz`` says whether what it
depends on is there, as a JSON object of dependency -> "ok" or the reason; 503 when something is missing without which
it cannot work. The server has a thread of its own, so that it can tell of an event loop that hangs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from libs.serving.readiness import Readiness
from libs.serving.small_server import SmallServer
from libs.telemetry import REGISTRY, TelemetrySettings

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

log = structlog.get_logger()

TURN_WITHIN_S: Final = 5.0
"""How long the event loop may take to get round to a question; longer than the slowest check."""
_SILENT_CLIENT_S: Final = 5.0


@asynccontextmanager
async def serve_status(settings: TelemetrySettings, *, needs: Iterable[str]) -> AsyncIterator[Readiness]:
    """Serve while the block runs, which registers the check of each dependency as soon as there is one.

    needs  dependencies without which the service is not ready
    Raises OSError when the address is taken.
    """
    readiness = Readiness(needs)
    if settings.status_port is None:
        yield readiness
        return
    pages = StatusPages(readiness, asyncio.get_running_loop())
    server = SmallServer(settings.status_host, settings.status_port, pages, silent_client_s=_SILENT_CLIENT_S)
    server.start()
    log.info("status.listening", host=settings.status_host, port=server.port)
    try:
        yield readiness
    finally:
        await asyncio.to_thread(server.close)


class StatusPages:
    """The pages as a WSGI application, called in threads other than that of ``loop``."""

    def __init__(self, readiness: Readiness, loop: asyncio.AbstractEventLoop) -> None:
        self._readiness = readiness
        self._loop = loop

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                return _metrics()(environ, start_response)
            case "/healthz":
                status, body = self._alive()
            case "/readyz":
                status, body = self._ready()
            case _:
                status, body = HTTPStatus.NOT_FOUND, {"error": "there are /healthz, /readyz and /metrics"}
        start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
        return [msgspec.json.encode(body), b"\n"]

    def _alive(self) -> tuple[HTTPStatus, dict[str, str]]:
        turn = threading.Event()
        self._loop.call_soon_threadsafe(turn.set)
        return _answer({"event_loop": None if turn.wait(TURN_WITHIN_S) else _HANGS}, is_good=turn.is_set())

    def _ready(self) -> tuple[HTTPStatus, dict[str, str]]:
        asking = asyncio.run_coroutine_threadsafe(self._readiness.problems(), self._loop)
        try:
            problems = asking.result(TURN_WITHIN_S)
        except TimeoutError:
            asking.cancel()
            return _answer({"event_loop": _HANGS}, is_good=False)
        return _answer(problems, is_good=self._readiness.is_ready(problems))


_HANGS: Final = f"no turn within {TURN_WITHIN_S:g} s"


def _answer(problems: dict[str, str | None], *, is_good: bool) -> tuple[HTTPStatus, dict[str, str]]:
    status = HTTPStatus.OK if is_good else HTTPStatus.SERVICE_UNAVAILABLE
    return status, {name: problem or "ok" for name, problem in problems.items()}


@cache
def _metrics() -> WSGIApplication:
    # Imported here, in a thread of the status server: where nobody collects metrics, its HTTP servers are not loaded.
    from prometheus_client.exposition import make_wsgi_app  # noqa: PLC0415

    return make_wsgi_app(REGISTRY)
