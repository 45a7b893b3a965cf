"""Binds a route to authentication, memory and its decoders, so that a request only has to pass through.

The order is that of trust: who asks, whether they may, and only then what of the body is read, or which module is
imported for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import Any, Final, TypeAlias

from msgspec import Struct

from libs.config.value_count import has_more_values
from libs.errors import InvalidRequest, NotFound
from services.api.access.authorization import check_caller, check_own
from services.api.access.credentials import ALLOCATION_TOKEN_HEADER, Credentials, find_credentials
from services.api.access.forwarded import forwarded_of
from services.api.access.own_pages import require_own_page
from services.api.access.principal import Principal
from services.api.access.rights.needs import check_needs, log_refusal
from services.api.access.rights.rights import CHECK_PERMISSIONS, UserRights
from services.api.http.audited_call import with_audit
from services.api.http.call import Call
from services.api.http.connection import raise_when_gone
from services.api.http.decoding.body import BodyDecoder
from services.api.http.decoding.query import QueryDecoder
from services.api.http.decoding.receiving import read_body
from services.api.http.decoding.upload_memory import UploadMemory
from services.api.http.errors import ErrorReply
from services.api.http.exchange import Exchange, send_result
from services.api.http.replies.silence import coding_for
from services.api.http.replies.streams import StreamResult, send_stream, type_of_stream, until_refused
from services.api.http.retry import retry_while_away
from services.api.http.routing import HandlerResult, Route, RouteToLoad

Authenticate: TypeAlias = Callable[[Credentials], Awaitable[Principal]]
FindRights: TypeAlias = Callable[[Principal], Awaitable[UserRights]]

_LARGE_BODY_BYTES: Final = 512 * 1024


async def basic_rights(principal: Principal) -> UserRights:
    """What a caller may do where roles do not count."""
    return UserRights(principal)


class BoundRoute:
    """One route with its decoders, ready to serve."""

    def __init__(
        self,
        route: Route | RouteToLoad,
        app_state: object,
        authenticate: Authenticate,
        recheck_interval_s: float,
        uploads: UploadMemory,
        *,
        silence_s: float,
        rights_of: FindRights = basic_rights,
        any_origin: bool = False,
    ) -> None:
        """``any_origin`` whether pages of all other addresses may use the cookie of a login."""
        self.method = route.method
        self.path = route.path
        self.permission = route.permission
        self.known: Route | RouteToLoad = route
        """What is known of the route, also before it is loaded."""
        self.is_loaded = isinstance(route, Route)
        self.route: Route
        """There is none until ``is_loaded``."""
        if isinstance(route, Route):
            self.route = route
        else:
            self._load = route.load
        self._needs_token = route.permission.needs_token
        self._any_origin = any_origin
        self._rights_of = rights_of
        self._uploads = uploads
        self._app_state = app_state
        self._authenticate = authenticate
        self._recheck_interval_s = recheck_interval_s
        self._silence_s = silence_s

    async def _import(self) -> None:
        """Import the module of the route, in a thread: others are answered meanwhile."""
        self.known = self.route = await asyncio.to_thread(self._load)
        self.is_loaded = True

    @cached_property
    def _decode_query(self) -> QueryDecoder[Any] | None:
        """Made for the first request, as ``_decode_body`` is: clients use few of the routes, and making all of the
        decoders is half of what an api does between its imports and its first answer."""
        return None if self.route.query is None else _query_decoder(self.route.query)

    @cached_property
    def _decode_body(self) -> Callable[[bytes], Any] | None:
        return _body_decoder(self.route)

    async def serve(self, exchange: Exchange, path: dict[str, str], explain: Callable[[Exception], ErrorReply]) -> None:
        """Answer a request; what it raises is for the caller to answer."""
        known = self.known
        repeats = known.idempotent and ALLOCATION_TOKEN_HEADER in exchange.headers
        principal = credentials = rights = None
        if self._needs_token:
            credentials = find_credentials(exchange.headers, allow_allocation=not known.raw)
            if credentials.of_cookie and not self._any_origin:
                require_own_page(known.method, exchange.headers, forwarded_of(exchange.scope))
            who = partial(self._authenticate, credentials)
            principal = await (retry_while_away(who) if repeats else who())
            check_caller(known.permission, principal)
            rights = await self._rights_of(principal)
        if not self.is_loaded:
            await self._import()
        route = self.route
        query = None if self._decode_query is None else self._decode_query(exchange.scope["query_string"])
        with self._uploads.reservation() as reservation:
            body = None
            if self._decode_body is not None:
                received = await read_body(
                    exchange.receive, exchange.headers, limit=route.body_limit, reservation=reservation
                )
                most = route.max_body_values
                if most is not None and has_more_values(received, most):
                    raise InvalidRequest(f"the request body has more than {most} values")
                # Of a large one, values are made for so long that nobody else would be answered meanwhile.
                decode = self._decode_body
                large = len(received) > _LARGE_BODY_BYTES
                body = await asyncio.to_thread(decode, received) if large else decode(received)
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
                rights=rights,
            )
            handle = self._handle if rights is None or not rights.by_roles else self._handle_by_roles
            result = await (retry_while_away(lambda: handle(call)) if repeats else handle(call))
        if isinstance(result, StreamResult):
            await self._send_stream(exchange, result, credentials, explain, call)
        else:
            await send_result(exchange, result)

    async def _handle_by_roles(self, call: Call[Any, Any, Any]) -> HandlerResult:
        with _hidden_or_missing():
            result = await self._handle(call)
        return StreamResult(_read_by_roles(result.batches)) if isinstance(result, StreamResult) else result

    async def _handle(self, call: Call[Any, Any, Any]) -> HandlerResult:
        if self._needs_token:
            await check_own(self.route.permission, call)
            await check_needs(self.route.needs, call)
            if call.rights.would_be is not None:
                await log_refusal(self.route.needs, call, endpoint=f"{self.route.method} {self.route.path}")
        rule, who = self.route.audit, call.principal_if_known
        if rule is None or (who is not None and who.is_narrow):
            return await self.route.handler(call)
        return await with_audit(rule, call, lambda: self.route.handler(call))

    async def _send_stream(
        self,
        exchange: Exchange,
        stream: StreamResult,
        credentials: Credentials | None,
        explain: Callable[[Exception], ErrorReply],
        call: Call[Any, Any, Any],
    ) -> None:
        beside: list[Callable[[], Coroutine[Any, Any, None]]] = [partial(raise_when_gone, exchange.receive)]
        if credentials is not None:
            admit_again = partial(self._admit_again, credentials, call)
            beside.append(partial(until_refused, admit_again, every_s=self._recheck_interval_s))
        accept = exchange.headers.get("accept", "")
        await send_stream(
            exchange.send,
            stream,
            headers=[type_of_stream(accept), *exchange.reply_headers()],
            coding=coding_for(accept=accept, accept_encoding=exchange.headers.get("accept-encoding", "")),
            classify=explain,
            silence_s=self._silence_s,
            beside=beside,
        )

    async def _admit_again(self, credentials: Credentials, call: Call[Any, Any, Any]) -> Principal:
        """Raises as for a new call, when what was good is not any more: the token, or the rights of its user."""
        principal = await self._authenticate(credentials)
        if call.rights.by_roles:
            call.look_again(await self._rights_of(principal))
            with _hidden_or_missing():
                await check_needs(self.route.needs, call)
        return principal


@contextmanager
def _hidden_or_missing() -> Iterator[None]:
    """What is not there and what the caller may not know of read the same."""
    try:
        yield
    except NotFound as error:
        error.args = (f"{error}{CHECK_PERMISSIONS}",)
        raise


async def _read_by_roles(batches: AsyncIterator[Sequence[Struct]]) -> AsyncIterator[Sequence[Struct]]:
    """A stream finds out for itself what is not there."""
    try:
        with _hidden_or_missing():
            async for batch in batches:
                yield batch
    finally:
        if isinstance(batches, AsyncGenerator):
            await batches.aclose()


def _body_decoder(route: Route) -> Callable[[bytes], Any] | None:
    if route.body is None:
        return None
    return bytes if route.body is bytes else _decoder_of_bodies(route.body, route.allow_nul)


# Decoders know nothing but their type. There is one for all routes that have it, and for all replicas in a process.
@cache
def _query_decoder(kind: type[Any]) -> QueryDecoder[Any]:
    return QueryDecoder(kind)


@cache
def _decoder_of_bodies(kind: type[Any], allow_nul: bool) -> BodyDecoder[Any]:
    return BodyDecoder(kind, allow_nul=allow_nul)
