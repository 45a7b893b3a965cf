"""The routes of the table, served: find the route, authenticate, decode, call the handler, encode or explain.

The table comes first, as one plain ASGI function with everything that can be prepared prepared at start: it answers
every report of every training process, and the layers of a framework cost as much as the rest of an answer. FastAPI
carries the lifespan and whatever is mounted beside the table (websockets, static files).
Source: docs/reference/platform.md 1 and 15, docs/reference/tasks-and-cli.md 1.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, TypeAlias

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage
from structlog.contextvars import bind_contextvars, reset_contextvars

from libs.errors import InvalidRequest
from services.api.access.credentials import ALLOCATION_TOKEN_HEADER, Credentials, find_credentials
from services.api.access.gate import check_caller, check_own
from services.api.access.principal import Principal
from services.api.http.builtin.health import Health, health_route
from services.api.http.builtin.metrics import HttpMetrics
from services.api.http.builtin.openapi import description_routes
from services.api.http.call import Call, ClientGone, while_connected
from services.api.http.decoding.body import BodyDecoder
from services.api.http.decoding.query import QueryDecoder
from services.api.http.decoding.upload_memory import UploadMemory, UploadReservation
from services.api.http.errors import UNKNOWN_API_PATH, ErrorReply, classify, unknown_path
from services.api.http.replies.reply import (
    EMPTY_MESSAGE,
    JSON_TYPE,
    SECURITY_HEADERS,
    Headers,
    RawResponse,
    Reply,
    as_headers,
    encode_message,
    send_bytes,
    send_json,
    send_raw,
)
from services.api.http.replies.streams import AUTHENTICATED_FOR_S, StreamResult, send_stream, until_refused
from services.api.http.retry import retry_while_away
from services.api.http.routing import HandlerResult, Route, RouteTable

Authenticate: TypeAlias = Callable[[Credentials], Awaitable[Principal]]
Lifespan: TypeAlias = Callable[[FastAPI], AbstractAsyncContextManager[None]]

API_PREFIX: Final = "/api/v1/"
_CLIENT_GONE_STATUS: Final = 499
_MAX_REQUEST_ID: Final = 64
# Together a new id for every request of every replica, without asking for randomness each time.
_PROCESS: Final = os.urandom(12).hex()
_COUNT: Final = itertools.count(1)

log = structlog.get_logger(__name__)


def build_application(
    routes: Sequence[Route],
    app_state: object,
    authenticate: Authenticate,
    lifespan: Lifespan | None = None,
    *,
    health: Health | None = None,
    registry: CollectorRegistry | None = None,
    enable_cors: bool = False,
    uploads: UploadMemory | None = None,
    authenticated_for_s: float = AUTHENTICATED_FOR_S,
) -> FastAPI:
    """The ASGI application that serves ``routes``, ``/metrics``, the API description and, if given, ``/health``.

    app_state     what handlers find as ``call.app``
    authenticate  raises Unauthenticated or PermissionDenied; called before anything of the body is read
    registry      where the HTTP metrics are registered, and what ``/metrics`` shows; None makes a new one
    enable_cors   allow browsers of any origin, with credentials
    uploads       bounds what large bodies occupy together; None does not
    authenticated_for_s  how long a stream goes on before ``authenticate`` is called for it again
    Raises ValueError when two routes answer the same requests, TypeError for a query that is no struct.
    Whatever is added to the returned application with ``add_route`` or ``mount`` gets what the table does not answer.
    """
    metrics = HttpMetrics(CollectorRegistry() if registry is None else registry)
    table: RouteTable[_Endpoint] = RouteTable()
    memory = UploadMemory(sys.maxsize) if uploads is None else uploads
    extra = [metrics.route(), *description_routes(routes)]
    if health is not None:
        extra.append(health_route(health))
    for route in [*routes, *extra]:
        endpoint = _Endpoint(route, app_state, authenticate, authenticated_for_s, memory)
        table.add(route.method, route.path, endpoint)
    return _Application(table, metrics, lifespan=lifespan, enable_cors=enable_cors)


class _Application(FastAPI):
    """HTTP meets the table first, then what is mounted, then a refusal; all else is FastAPI's."""

    def __init__(
        self, table: RouteTable[_Endpoint], metrics: HttpMetrics, *, lifespan: Lifespan | None, enable_cors: bool
    ) -> None:
        super().__init__(openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan, redirect_slashes=False)
        dispatcher = _Dispatcher(table, metrics, beside=super().__call__)
        self.router.default = dispatcher.refuse
        self._http: ASGIApp = dispatcher
        if enable_cors:
            self._http = CORSMiddleware(
                dispatcher, allow_origin_regex=".*", allow_credentials=True, allow_methods=["*"], allow_headers=["*"]
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class _Dispatcher:
    """The rim: every request gets an id, an answer and a place in the metrics, whatever happens inside."""

    def __init__(self, table: RouteTable[_Endpoint], metrics: HttpMetrics, *, beside: ASGIApp) -> None:
        self._table = table
        self._metrics = metrics
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        found = self._table.find(method, raw_path) or (self._find_page(raw_path) if method == "HEAD" else None)
        if found is None:
            await self._beside(scope, receive, send)
            return
        path, endpoint = found
        exchange = _Exchange(scope, receive, send)
        await self._answer(exchange, self._serve(exchange, path, endpoint), (method, endpoint.route.path))

    def _find_page(self, raw_path: bytes) -> tuple[dict[str, str], _Endpoint] | None:
        """What a probe asks for with HEAD: anything public outside of /api/v1; the server leaves out the body."""
        found = self._table.find("GET", raw_path)
        if found is None or found[1].route.access.needs_token or raw_path.startswith(API_PREFIX.encode()):
            return None
        return found

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that nobody serves."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            exchange = _Exchange(scope, receive, send)
            refusal = _refuse_unknown(exchange, scope["method"], scope["path"])
            # What clients make up stays out of the labels: every new value is a new time series.
            await self._answer(exchange, refusal, ("unknown", "unknown"))

    async def _answer(self, exchange: _Exchange, answering: Awaitable[None], labels: tuple[str, str]) -> None:
        started_s = time.perf_counter()
        self._metrics.started()
        status = 500
        tokens = bind_contextvars(request_id=exchange.request_id)
        try:
            await answering
            status = exchange.status
        except ClientGone:
            status = _CLIENT_GONE_STATUS
        finally:
            reset_contextvars(**tokens)
            self._metrics.finished(*labels, status, time.perf_counter() - started_s)

    async def _serve(self, exchange: _Exchange, path: dict[str, str], endpoint: _Endpoint) -> None:
        route = endpoint.route

        def explain(error: Exception) -> ErrorReply:
            failure = classify(error, request_id=exchange.request_id)
            if failure.unexpected:
                log.error("http.unexpected", method=route.method, route=route.path, exc_info=error)
                self._metrics.unexpected(route.method, route.path)
            return failure

        try:
            await endpoint.serve(exchange, path, explain)
        except ClientGone:
            raise
        except Exception as error:  # the rim: every exception gets an answer, and the unforeseen ones a log entry
            failure = explain(error)
            if exchange.status:
                raise ClientGone from error  # half an answer is out; cutting the connection is all there is left to say
            await _send_failure(exchange, failure, stream=route.stream, raw=route.raw)


class _Exchange:
    """One request and the answer to it; remembers the status once it is sent."""

    __slots__ = ("_send", "headers", "receive", "request_id", "scope", "status")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.request_id = _request_id(self.headers)
        self.status = 0
        self._send = send

    async def send(self, message: AsgiMessage) -> None:
        """Raises ClientGone when nobody is there to receive the message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        try:
            await self._send(message)
        except OSError as error:
            raise ClientGone from error

    async def send_with_defaults(self, message: AsgiMessage) -> None:
        """Like ``send``, for answers that do not know ``reply_headers``: adds those that are missing."""
        if message["type"] == "http.response.start":
            own = list(message.get("headers", []))
            names = {name.lower() for name, _ in own}
            missing = [header for header in self.reply_headers() if header[0] not in names]
            message = {**message, "headers": [*own, *missing]}
        await self.send(message)

    def reply_headers(self) -> Headers:
        """What every answer carries."""
        return [*SECURITY_HEADERS, (b"x-request-id", self.request_id.encode("latin-1"))]


class _Endpoint:
    """One route with its decoders, ready to serve."""

    def __init__(
        self,
        route: Route,
        app_state: object,
        authenticate: Authenticate,
        authenticated_for_s: float,
        uploads: UploadMemory,
    ) -> None:
        self.route = route
        self._uploads = uploads
        self._app_state = app_state
        self._authenticate = authenticate
        self._authenticated_for_s = authenticated_for_s
        self._decode_query = None if route.query is None else QueryDecoder[Any](route.query)
        self._decode_body = _body_decoder(route)

    async def serve(
        self, exchange: _Exchange, path: dict[str, str], explain: Callable[[Exception], ErrorReply]
    ) -> None:
        route = self.route
        repeats = route.idempotent and ALLOCATION_TOKEN_HEADER in exchange.headers
        principal = credentials = None
        if route.access.needs_token:
            credentials = find_credentials(exchange.headers, allow_allocation=not route.raw)
            who = partial(self._authenticate, credentials)
            principal = await (retry_while_away(who) if repeats else who())
            check_caller(route.access, principal)
        query = None if self._decode_query is None else self._decode_query(exchange.scope["query_string"])
        with self._uploads.reservation() as reservation:
            body = None
            if self._decode_body is not None:
                body = self._decode_body(await read_body(exchange, route.body_limit, reservation))
            call = Call(
                app=self._app_state,
                request_id=exchange.request_id,
                query=query,
                body=body,
                path=path,
                principal=principal,
                headers=exchange.headers,
                scope=exchange.scope,
                receive=exchange.receive,
            )
            result = await (retry_while_away(lambda: self._handle(call)) if repeats else self._handle(call))
        if isinstance(result, StreamResult):
            await self._send_stream(exchange, result, credentials, explain)
        else:
            await _send_result(exchange, result)

    async def _handle(self, call: Call[Any, Any, Any]) -> HandlerResult:
        if self.route.access.needs_token:
            await check_own(self.route.access, call)
        return await self.route.handler(call)

    async def _send_stream(
        self,
        exchange: _Exchange,
        stream: StreamResult,
        credentials: Credentials | None,
        explain: Callable[[Exception], ErrorReply],
    ) -> None:
        until = None
        if credentials is not None:
            until = until_refused(partial(self._authenticate, credentials), every_s=self._authenticated_for_s)
        sending = send_stream(exchange.send, stream, headers=exchange.reply_headers(), classify=explain, until=until)
        await while_connected(exchange.receive, sending)


async def _send_result(exchange: _Exchange, result: HandlerResult) -> None:
    headers = exchange.reply_headers()
    match result:
        case RawResponse():
            sending = send_raw(exchange.send, result, headers=headers)
            await (sending if isinstance(result.content, bytes) else while_connected(exchange.receive, sending))
        case Response():
            await result(exchange.scope, exchange.receive, exchange.send_with_defaults)
        case Reply(message=message, headers=own):
            await _send_message(exchange, message, [*as_headers(own), *headers])
        case _:
            await _send_message(exchange, result, headers)


async def _send_message(exchange: _Exchange, message: object, headers: Headers) -> None:
    pretty = b"pretty" in exchange.scope["query_string"]
    if message is None and not pretty:
        await send_bytes(exchange.send, EMPTY_MESSAGE, status=200, headers=[JSON_TYPE, *headers])
        return
    await send_json(
        exchange.send,
        encode_message(message, pretty=pretty),
        accept_encoding=exchange.headers.get("accept-encoding", ""),
        headers=headers,
    )


async def _send_failure(exchange: _Exchange, failure: ErrorReply, *, stream: bool, raw: bool) -> None:
    body = failure.stream_body() if stream else failure.plain_body() if raw else failure.api_body()
    headers: Headers = [JSON_TYPE, *exchange.reply_headers(), *failure.headers]
    await send_bytes(exchange.send, body, status=failure.status, headers=headers)


async def _refuse_unknown(exchange: _Exchange, method: str, path: str) -> None:
    if path.startswith(API_PREFIX):
        await _send_failure(exchange, UNKNOWN_API_PATH, stream=False, raw=False)
    else:
        await _send_failure(exchange, unknown_path(method, path), stream=False, raw=True)


def _body_decoder(route: Route) -> Callable[[bytes], Any] | None:
    if route.body is None:
        return None
    return bytes if route.body is bytes else BodyDecoder[Any](route.body, allow_nul=route.allow_nul)


async def read_body(exchange: _Exchange, limit: int, reservation: UploadReservation) -> bytes:
    """The whole body of a request, which is never held beyond ``limit`` bytes.

    Raises InvalidRequest for a longer one (at once, when its length is announced), Unavailable when there is no memory
    for it now, ClientGone for one that breaks off.
    """
    announced = exchange.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        reservation.grow(size)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> InvalidRequest:
    return InvalidRequest(f"the request body is larger than {limit} bytes")


def _request_id(headers: dict[str, str]) -> str:
    """The id a proxy in front gave the request, if it is a decent one, or a new one."""
    given = headers.get("x-request-id", "")
    if 0 < len(given) <= _MAX_REQUEST_ID and given.isascii() and given.replace("-", "").isalnum():
        return given
    return f"{_PROCESS}{next(_COUNT):08x}"
