"""HTTP interface of the log intake: shippers deliver here, and pods ask whether everything has come.

The answer to ``POST /ingest/v1/logs`` decides about the lines. 200 says that the bus has them on disk, and fluent-bit
forgets them. 429 and 503 make it try again for ever. Any other 4xx makes it throw the lines away, so that is only said
of what no later attempt could make good (docs/reference/logs.md 13.8).

``GET /ingest/v1/complete?wait_s=<seconds>`` answers ``Completeness`` as JSON, as soon as both outputs of the container
are complete or when the time is over; whoever still wants to know asks again.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Final

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from libs.bus import Bus
from libs.clock import Clock
from libs.db.connecting.pool import DriverPool
from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.events import subjects
from libs.loglines.batches import message_id
from libs.telemetry import counter
from services.logs.intake.authentication import NoTokenError, UnknownTokenError, origin_of
from services.logs.intake.completeness import LONGEST_WAIT_S, Completeness, wait_until_complete
from services.logs.intake.reception import MemoryBudget, OverloadedError, Reception, TooLargeError, UndecodableError
from services.logs.intake.tokens import TokenCache
from services.logs.lines.bodies import records_of
from services.logs.lines.fast_path import fast_path_batches
from services.logs.lines.streams import LineOrigin, batches_of
from services.logs.settings import IntakeSettings

log = structlog.get_logger()

REQUESTS = counter("resolute_logs_requests_total", "Requests of shippers", "status")
TAKEN = counter("resolute_logs_bytes_taken_total", "Decompressed bytes that the bus has stored")

DEADLINE_S: Final = 15.0
"""Longest time for one request; fluent-bit gives up after 20 s, and would not know what became of its lines."""
_IN_THREAD_BYTES: Final = 128 * 1024
_COMES_AGAIN: Final = (OverloadedError, Unavailable, ClientDisconnect, asyncio.CancelledError)
"""How a delivery fails for a reason that is not in it; the deadline and a client that left cancel it."""
_WORTH_ANOTHER_TRY: Final = (UnknownTokenError, Unavailable, TimeoutError, ClientDisconnect)


class Published(msgspec.Struct, frozen=True):
    subject: str
    ident: str
    payload: bytes


class Intake:
    """Takes bodies of task pods to the bus."""

    def __init__(self, *, db: DriverPool, bus: Bus, tokens: TokenCache, clock: Clock, settings: IntakeSettings) -> None:
        self._db = db
        self._bus = bus
        self._tokens = tokens
        self._clock = clock
        self._reception = Reception(
            received=MemoryBudget(settings.received_bytes, max_wait_s=settings.turn_wait_s),
            decoded=MemoryBudget(settings.memory_bytes, max_wait_s=settings.turn_wait_s),
            max_body_bytes=settings.max_body_bytes,
        )

    async def completeness(self, request: Request) -> Completeness:
        """What ``GET /ingest/v1/complete`` answers; waits as long as it asks for."""
        origin = await origin_of(request.headers, self._tokens)
        wait_s = _seconds(request.query_params.get("wait_s", ""))
        return await wait_until_complete(self._db, self._bus, origin, wait_s=min(wait_s, LONGEST_WAIT_S))

    async def receive(self, request: Request) -> int:
        """Status of the answer to one delivery."""
        origin = await origin_of(request.headers, self._tokens)
        encoding = request.headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            return 503  # a configuration ahead of this release
        try:
            TAKEN.inc(await self._take(request, origin, is_gzip=encoding == "gzip"))
        except _COMES_AGAIN:
            # Writers wait for lines as long as these can come, and these will.
            await self._bus.publish_core(subjects.log_refused(origin.task), origin.task.encode())
            raise
        return 200

    async def _take(self, request: Request, origin: LineOrigin, *, is_gzip: bool) -> int:
        """Bring a body to the bus; returns its decompressed size."""
        announced = request.headers.get("content-length", "")
        length = int(announced) if announced.isascii() and announced.isdigit() else 0
        async with self._reception.body(request.stream(), is_gzip=is_gzip, length=length) as body:
            for message in await self._messages(body, origin):
                await self._bus.publish(message.subject, message.payload, msg_id=message.ident)
        return len(body)

    async def _messages(self, body: bytes, origin: LineOrigin) -> list[Published]:
        now_ns = int(self._clock.now().timestamp() * 1e9)
        if len(body) < _IN_THREAD_BYTES:
            return _messages(body, origin, now_ns)
        return await asyncio.to_thread(_messages, body, origin, now_ns)


def _messages(body: bytes, origin: LineOrigin, now_ns: int) -> list[Published]:
    subject = subjects.logs(origin.task)
    batches = fast_path_batches(body, origin)
    if batches is None:
        batches = batches_of(records_of(body), origin, body=body, now_ns=now_ns)
    return [Published(subject, message_id(batch), msgspec.msgpack.encode(batch)) for batch in batches]


def _seconds(value: str) -> float:
    """What a client would wait; nonsense is no wait."""
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def intake_app(*, db: DriverPool, bus: Bus, tokens: TokenCache, clock: Clock, settings: IntakeSettings) -> Starlette:
    """The HTTP side of the service. Its two routes need nothing of what FastAPI brings, which is 9 MB."""
    intake = Intake(db=db, bus=bus, tokens=tokens, clock=clock, settings=settings)

    async def ingest(request: Request) -> Response:
        began = time.monotonic()
        try:
            async with asyncio.timeout(DEADLINE_S):
                status = await intake.receive(request)
            reason = ""
        except Exception as error:  # noqa: BLE001  the rim: every failure becomes an answer, and a log line
            status, reason = _status_of(error), repr(error)
        if status >= 400:
            pod = request.headers.get("x-det-pod", "")
            log.warning("logs.delivery_refused", status=status, reason=reason, pod=pod, s=time.monotonic() - began)
        REQUESTS.labels(str(status)).inc()
        return Response(status_code=status)

    async def complete(request: Request) -> Response:
        try:
            async with asyncio.timeout(LONGEST_WAIT_S + DEADLINE_S):
                found = await intake.completeness(request)
        except Exception as error:  # noqa: BLE001  the rim: every failure becomes an answer, and a log line
            status = _status_of(error)
            log.warning("logs.completeness_unknown", status=status, reason=repr(error))
            return Response(status_code=status)
        return Response(msgspec.json.encode(found), media_type="application/json")

    return Starlette(
        routes=[
            Route("/ingest/v1/logs", ingest, methods=["POST"]),
            Route("/ingest/v1/complete", complete, methods=["GET"]),
        ]
    )


def _status_of(error: Exception) -> int:
    """The answer to a failure: whatever we do not know better about is worth another attempt."""
    if isinstance(error, TooLargeError):
        return 413
    if isinstance(error, UndecodableError):
        return 400
    if isinstance(error, NoTokenError):
        return 401
    if isinstance(error, OverloadedError):
        return 429
    if isinstance(error, _WORTH_ANOTHER_TRY) or is_connection_failure(error):
        return 503
    log.error("logs.intake_failed", exc_info=error)
    return 503
