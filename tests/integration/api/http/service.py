"""A small service with one route of every kind, as the tests of the adapter need it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from starlette.responses import PlainTextResponse, Response

from libs.errors import InvalidRequest, NotFound, PermissionDenied, Unauthenticated, Unavailable
from libs.ids import AllocationId, UserId
from services.api.access.credentials import Credentials, TokenKind
from services.api.access.principal import CallingTask, Principal
from services.api.access.route_permission import ANYBODY
from services.api.http.application import Application, build_application
from services.api.http.builtin.health import HealthReport
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse, Reply
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Route, RouteToLoad
from services.api.wire.base import Int64, Message


class Echo(Message):
    number: int = 0
    size: Int64 = "0"
    text: str = ""
    caller: str = ""


class Size(Message):
    size: int = 0


@dataclass
class World:
    """What the handlers work with, and where they leave traces."""

    healthy: bool = True
    held: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    bodies_read: int = 0
    losses: int = 0
    """How often the connection to the database still breaks, after the work is done."""
    done: int = 0
    refused: Exception | None = None
    """What everybody is told who asks for something."""
    refusals: asyncio.Queue[Exception] = field(default_factory=asyncio.Queue)
    """One for each time that somebody was told so."""


async def authenticate(credentials: Credentials) -> Principal:
    if credentials.token == "stale":
        raise Unauthenticated("invalid credentials")
    if credentials.token == "inactive":
        raise PermissionDenied("user does not have permission")
    if credentials.kind is TokenKind.ALLOCATION:
        task = CallingTask(allocation_id=AllocationId(credentials.token))
        return Principal(user_id=UserId(1), username="owner", task=task)
    return Principal(user_id=UserId(1), username=credentials.token, session_id=5)


async def echo(call: Call[World, None, Echo]) -> Echo:
    call.app.bodies_read += 1
    caller = call.principal.task.allocation_id if call.principal.task else call.principal.username
    return Echo(number=call.body.number, size=call.body.size, text=call.body.text, caller=caller)


async def report(call: Call[World, None, None]) -> None:
    call.app.done += 1
    if call.app.losses:
        call.app.losses -= 1
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


async def get(call: Call[World, None, None]) -> Echo:
    return Echo(number=call.path_int("echoId"), caller=call.principal.username)


async def sized(call: Call[World, Size, None]) -> Echo:
    return Echo(text="x" * call.query.size)


async def quiet(_: Call[World, None, None]) -> None:
    return None


async def password(call: Call[World, None, str]) -> Echo:
    return Echo(text=call.body)


async def login(_: Call[World, None, None]) -> Reply:
    return Reply(Echo(text="welcome"), headers={"Set-Cookie": "auth=t; Path=/"})


ERRORS: dict[str, Exception] = {
    "missing": NotFound("thing", "x"),
    "unsayable": NotFound("thing", "\ud800"),
    "away": Unavailable("bus"),
    "deadlock": asyncpg.DeadlockDetectedError("deadlock detected"),
    "bug": ZeroDivisionError("a secret"),
}


async def fail(call: Call[World, None, None]) -> None:
    raise ERRORS[call.path_str("how")]


async def lines(call: Call[World, Size, None]) -> StreamResult:
    async def batches() -> AsyncIterator[Sequence[Echo]]:
        yield []
        yield [Echo(number=n) for n in range(call.query.size)]
        yield []

    return StreamResult(batches())


async def failing_lines(call: Call[World, None, None]) -> StreamResult:
    how = call.path_str("how")
    if how == "handler":
        raise InvalidRequest("Limit must be >= 0")

    async def batches() -> AsyncIterator[Sequence[Echo]]:
        if how == "first":
            raise NotFound("task", "x")
        yield [Echo(number=1)]
        raise NotFound("task", "y")

    return StreamResult(batches())


async def follow(call: Call[World, None, None]) -> StreamResult:
    async def batches() -> AsyncIterator[Sequence[Echo]]:
        try:
            yield [Echo(number=1)]
            call.app.held.set()
            await asyncio.Event().wait()
        finally:
            call.app.released.set()

    return StreamResult(batches())


async def follow_nothing(_: Call[World, None, None]) -> StreamResult:
    async def batches() -> AsyncIterator[Sequence[Echo]]:
        await asyncio.Event().wait()
        yield []

    return StreamResult(batches())


async def poll(call: Call[World, None, None]) -> Echo:
    async def forever() -> Echo:
        call.app.held.set()
        try:
            await asyncio.Event().wait()
        finally:
            call.app.released.set()
        return Echo()

    return await call.while_connected(forever())


async def download(call: Call[World, None, None]) -> RawResponse:
    how = call.path_str("how")

    async def pieces() -> AsyncIterator[bytes]:
        if how == "early":
            raise NotFound("file", "x")
        yield b"a" * 5000
        if how == "late":
            raise ZeroDivisionError
        yield b"b"

    return RawResponse(pieces(), media_type="application/gzip", headers={"Content-Disposition": "attachment"})


async def starlette(call: Call[World, None, None]) -> Response:
    return PlainTextResponse(call.request.url.path, headers={"X-Frame-Options": "DENY"})


ROUTES = [
    Route(method="POST", path="/api/v1/echoes", handler=echo, body=Echo, response=Echo, max_body_bytes=10_000),
    Route(method="GET", path="/api/v1/echoes/{echoId}", handler=get, response=Echo),
    Route(method="POST", path="/api/v1/reports", handler=report, idempotent=True),
    Route(method="POST", path="/api/v1/things", handler=report),
    Route(method="GET", path="/api/v1/sized", handler=sized, query=Size, response=Echo, permission=ANYBODY),
    Route(method="DELETE", path="/api/v1/echoes/{echoId}", handler=quiet),
    Route(method="POST", path="/api/v1/password", handler=password, body=str, response=Echo),
    Route(method="POST", path="/api/v1/auth/login", handler=login, permission=ANYBODY),
    Route(method="GET", path="/api/v1/fail/{how}", handler=fail),
    Route(method="GET", path="/api/v1/lines", handler=lines, query=Size, response=Echo, stream=True),
    Route(method="GET", path="/api/v1/failing-lines/{how}", handler=failing_lines, response=Echo, stream=True),
    Route(method="GET", path="/api/v1/follow", handler=follow, response=Echo, stream=True),
    Route(method="GET", path="/api/v1/follow-nothing", handler=follow_nothing, response=Echo, stream=True),
    Route(method="GET", path="/api/v1/poll", handler=poll, response=Echo),
    Route(method="GET", path="/download/{how}", handler=download, raw=True),
    Route(method="GET", path="/raw-fail/{how}", handler=fail, raw=True),
    Route(method="GET", path="/starlette", handler=starlette, permission=ANYBODY, raw=True),
]


def application(world: World, routes: Sequence[Route | RouteToLoad] = ROUTES, **options: Any) -> Application:
    async def health() -> HealthReport:
        return HealthReport() if world.healthy else HealthReport(status="down", database="down")

    async def who(credentials: Credentials) -> Principal:
        if world.refused is not None:
            world.refusals.put_nowait(world.refused)
            raise world.refused
        return await authenticate(credentials)

    return build_application(routes, world, who, health=health, **options)
