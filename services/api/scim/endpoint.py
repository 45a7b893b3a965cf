"""The rim of SCIM: who calls, what the body is, what of it is recorded, and how a refusal reads.

These routes are outside of the usual ones: their callers are no users, and their errors have a form of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeAlias

import msgspec

from libs.db.audit.records import tell_caller
from libs.errors import InvalidRequest
from libs.imports.one_by_one import IMPORTING
from services.api.access.forwarded import visited_hosts
from services.api.app import App
from services.api.http.call import Call
from services.api.http.decoding.body import BodyDecoder
from services.api.http.errors import ErrorReply
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Handler
from services.api.scim.audit import details_of
from services.api.scim.callers import caller_of
from services.api.scim.errors import InvalidSyntax, NotThere, UnknownCaller, error_body

PREFIX: Final = "/scim/v2"
_TYPE: Final = "application/scim+json"
_decode: Final = BodyDecoder[dict[str, Any]](dict[str, Any])


@dataclass(frozen=True, slots=True)
class ScimCall:
    """A call whose caller is known.

    body  of a call that changes something; empty of others
    base  the address of ``/scim/v2``, as the caller knows it
    """

    app: App
    base: str
    query: Mapping[str, str]
    body: Mapping[str, Any]
    ident: str


@dataclass(frozen=True, slots=True)
class ScimAnswer:
    """``body`` is None where there is nothing to say."""

    body: Mapping[str, Any] | None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handle: TypeAlias = Callable[[ScimCall], Awaitable[ScimAnswer]]


def endpoint(name: str) -> Handler:
    """The handler of a route, which is ``name`` in ``calls.py``; ``{id}`` in its path is ``ScimCall.ident``."""

    async def handler(call: Call[App, None, bytes | None]) -> RawResponse:
        config = call.app.cluster.scim
        if not config.enabled:
            scope = call.request.scope
            raise NotThere(scope["method"], scope["path"])
        caller = await caller_of(
            call.headers.get("authorization", ""),
            address=call.address,
            config=config.auth,
            db=call.app.db,
            logins=call.app.scim_logins,
            now=call.app.clock.now(),
        )
        request = _request(call)
        tell_caller(caller, details_of(request.body))
        # With its library, which those who do not use SCIM do without. Other calls go on while it is loaded.
        calls = await asyncio.to_thread(_calls)
        handle: Handle = getattr(calls, name)
        return _sent(await handle(request))

    return handler


def _calls() -> ModuleType:
    with IMPORTING:
        return import_module("services.api.scim.calls")


def write_error(error: Exception, failure: ErrorReply) -> RawResponse:
    """A refusal; where there is no SCIM, it has not its form either."""
    if isinstance(error, NotThere):
        return RawResponse(failure.plain_body(), media_type="application/json", status=failure.status)
    headers = {name.decode(): value.decode() for name, value in failure.headers}
    if isinstance(error, UnknownCaller):
        headers["WWW-Authenticate"] = error.challenge
    return _sent(ScimAnswer(error_body(error, status=failure.status, message=failure.message), failure.status, headers))


def _request(call: Call[App, None, bytes | None]) -> ScimCall:
    """Raises InvalidRequest."""
    scheme = call.request.scope.get("scheme", "http")
    body = {}
    if call.body is not None:
        try:
            body = _decode(call.body)
        except InvalidRequest as error:
            raise InvalidSyntax(str(error)) from None
    return ScimCall(
        app=call.app,
        base=f"{scheme}://{next(iter(visited_hosts(call.headers)), '')}{PREFIX}",
        query=call.request.query_params,
        body=body,
        ident=call.path_str("id") if "id" in call.path_texts else "",
    )


def _sent(answer: ScimAnswer) -> RawResponse:
    content = b"" if answer.body is None else msgspec.json.encode(answer.body)
    return RawResponse(content, media_type=_TYPE, status=answer.status, headers=answer.headers)
