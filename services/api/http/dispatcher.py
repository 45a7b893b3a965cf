"""Dispatches requests to the routes of the table, and answers for whatever happens inside of them.

One plain ASGI function, in front of the router of Starlette (``application.py`` says why).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, reset_contextvars

from libs.errors import Unavailable
from libs.tracing import is_tracing
from services.api.http.bound_route import BoundRoute
from services.api.http.connection import ClientGone
from services.api.http.errors import UNKNOWN_API_PATH, ErrorReply, classify, unknown_method, unknown_path
from services.api.http.exchange import Exchange, send_error, send_result
from services.api.http.request_metrics import request_failed_unexpectedly, request_finished, request_started
from services.api.http.request_trace import request_span
from services.api.http.routing import API_PREFIX, RouteTable

STOPPING: Final = Unavailable("the service is stopping, try again")
_CLIENT_GONE_STATUS: Final = 499

ExchangeHandler: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Answers a request; what it raises is answered as everything outside of /api/v1."""

log = structlog.get_logger(__name__)


class Dispatcher:
    """The rim: every request gets an id, an answer and a place in the metrics, whatever happens inside."""

    def __init__(
        self,
        table: RouteTable[BoundRoute],
        *,
        beside: ASGIApp,
        below: Mapping[str, ExchangeHandler] | None = None,
        only_below: Callable[[Scope], bool] = lambda _: False,
    ) -> None:
        """``below`` what answers everything below a prefix, as ``/proxy/``: no route begins with it.

        only_below  which requests get nothing else, whatever they ask for
        """
        self._only_below = only_below
        self._table = table
        self._beside = beside
        self._below = {prefix.encode(): handler for prefix, handler in (below or {}).items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        for prefix, handler in self._below.items():
            if raw_path.startswith(prefix):
                exchange = Exchange(scope, receive, send)
                route = prefix.decode()
                # Methods are whatever clients make up, and every new one would be a new time series.
                await self._answer(exchange, self._serve_below(exchange, route, handler), ("any", route))
                return
        if self._only_below(scope):
            await self._refuse(scope, receive, send, allow=())
            return
        found = self._table.find(method, raw_path) or (self._find_page(raw_path) if method == "HEAD" else None)
        if found is not None:
            path, endpoint = found
            exchange = Exchange(scope, receive, send)
            serving = self._serve(exchange, path, endpoint)
            labels = (method, endpoint.path)
            if is_tracing():
                with request_span(exchange, *labels):
                    await self._answer(exchange, serving, labels)
            else:
                await self._answer(exchange, serving, labels)
            return
        await self._beside(scope, receive, send)

    def _find_page(self, raw_path: bytes) -> tuple[dict[str, str], BoundRoute] | None:
        """What a probe asks for with HEAD: anything public outside of /api/v1; the server leaves out the body."""
        found = self._table.find("GET", raw_path)
        if found is None or found[1].permission.needs_token or raw_path.startswith(API_PREFIX.encode()):
            return None
        return found

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that nobody serves; of a path that is known, it says which methods there are."""
        await self._refuse(scope, receive, send, allow=self._methods(scope))

    def _methods(self, scope: Scope) -> tuple[str, ...]:
        if scope["type"] != "http":
            return ()
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        methods = self._table.methods(raw_path)
        return ("HEAD", *methods) if self._find_page(raw_path) is not None else methods

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, allow: tuple[str, ...]) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            exchange = Exchange(scope, receive, send)
            refusal = _refuse_unknown(exchange, scope["method"], scope["path"], allow)
            # What clients make up stays out of the labels: every new value is a new time series.
            await self._answer(exchange, refusal, ("unknown", "unknown"))

    async def _answer(self, exchange: Exchange, answering: Awaitable[None], labels: tuple[str, str]) -> None:
        started_s = time.perf_counter()
        request_started()
        status = 500
        tokens = bind_contextvars(request_id=exchange.request_id)
        try:
            await answering
            status = exchange.status
        except ClientGone:
            status = _CLIENT_GONE_STATUS
        finally:
            reset_contextvars(**tokens)
            request_finished(*labels, status, time.perf_counter() - started_s)

    async def _serve(self, exchange: Exchange, path: dict[str, str], endpoint: BoundRoute) -> None:
        def explain(error: Exception) -> ErrorReply:
            return _explain(exchange, error, endpoint.method, endpoint.path)

        try:
            await endpoint.serve(exchange, path, explain)
        except ClientGone:
            raise
        except asyncio.CancelledError:
            # The service stops before there is an answer, as while it waits for the database. A 500, which the server
            # would send, ends a training run; this is asked again.
            if not exchange.status:
                await _send_failure(exchange, endpoint, explain(STOPPING))
            raise
        except Exception as error:  # the rim: every exception gets an answer, and the unforeseen ones a log entry
            failure = explain(STOPPING if _is_cut() else error)
            if exchange.status:
                raise ClientGone from error  # half an answer is out; cutting the connection is all there is left to say
            if endpoint.is_loaded and endpoint.route.write_error is not None:
                await send_result(exchange, endpoint.route.write_error(error, failure))
            else:
                await _send_failure(exchange, endpoint, failure)

    async def _serve_below(self, exchange: Exchange, route: str, handler: ExchangeHandler) -> None:
        try:
            await handler(exchange)
        except ClientGone:
            raise
        except Exception as error:  # the rim, as above
            failure = _explain(exchange, error, exchange.scope["method"], route)
            if exchange.status:
                raise ClientGone from error
            await send_error(exchange, failure, stream=False, raw=True)


async def _send_failure(exchange: Exchange, endpoint: BoundRoute, failure: ErrorReply) -> None:
    await send_error(exchange, failure, stream=endpoint.known.stream, raw=endpoint.known.raw)


def _is_cut() -> bool:
    """Whether the request is being cancelled, which what it was doing may have turned into an error of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _explain(exchange: Exchange, error: Exception, method: str, route: str) -> ErrorReply:
    failure = classify(error, request_id=exchange.request_id)
    if failure.unexpected:
        log.error("http.unexpected", method=method, route=route, exc_info=error)
        request_failed_unexpectedly(method, route)
    return failure


async def _refuse_unknown(exchange: Exchange, method: str, path: str, allow: tuple[str, ...]) -> None:
    raw = not path.startswith(API_PREFIX)
    if allow:
        await send_error(exchange, unknown_method(method, allow), stream=False, raw=raw)
    else:
        await send_error(exchange, unknown_path(method, path) if raw else UNKNOWN_API_PATH, stream=False, raw=raw)
