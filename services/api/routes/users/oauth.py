"""OAuth 2.0 for SCIM: administrators register clients and authorize them, which then ask for tokens (RFC 6749)."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus, urlencode

import msgspec
from msgspec.structs import replace

from libs.db.audit.records import recorded
from libs.errors import InvalidRequest, Unauthenticated
from services.api.access.audit_table import AuditRule
from services.api.access.credentials import find_credentials
from services.api.access.rights.actions import Action
from services.api.access.rights.loading import rights_of
from services.api.app import App
from services.api.http.audited_call import request_of
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route
from services.api.oauth import clients, tokens
from services.api.oauth.errors import OAuthError
from services.api.oauth.redirects import is_allowed, with_query
from services.api.scim.errors import NotThere
from services.api.wire.base import Message

_AUTHORIZE: Final = AuditRule("GET /oauth2/authorize")
_MOST_FIELDS: Final = 50
_NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}

AnyCall = Call[App, Any, Any]


class AddClientRequest(Message):
    domain: str = ""
    name: str = ""


def _with_oauth(handle: Callable[[AnyCall], Awaitable[RawResponse]]) -> Callable[[AnyCall], Awaitable[RawResponse]]:
    """Where SCIM does not want OAuth there are no such paths."""

    @wraps(handle)
    async def handler(call: AnyCall) -> RawResponse:
        scim = call.app.cluster.scim
        if scim.enabled and scim.auth.type == "oauth":
            return await handle(call)
        scope = call.request.scope
        raise NotThere(scope["method"], scope["path"])

    return handler


@_with_oauth
async def list_clients(call: AnyCall) -> RawResponse:
    call.rights.require(Action.MANAGE_OAUTH)
    async with call.app.db.read() as connection:
        found = await clients.list_clients(connection)
    return _json([{key: each[key] for key in ("id", "name", "domain")} for each in found])


@_with_oauth
async def add_client(call: AnyCall) -> RawResponse:
    call.rights.require(Action.MANAGE_OAUTH)
    body = call.body
    return _json(
        await clients.add_client(call.app.db, name=body.name, domain=body.domain, now=call.app.clock.now()),
    )


@_with_oauth
async def remove_client(call: AnyCall) -> RawResponse:
    call.rights.require(Action.MANAGE_OAUTH)
    await clients.remove_client(call.app.db, call.path_str("id"))
    return _json({})


@_with_oauth
async def authorize(call: AnyCall) -> RawResponse:
    """An administrator comes with a browser, and is led back to the client with a code (RFC 6749 4.1.1).

    Nobody is asked: the client was registered by an administrator, and codes go nowhere but to its domain.
    """
    app, query = call.app, call.request.query_params
    try:
        principal = await app.sessions.authenticate(find_credentials(call.headers, allow_allocation=False))
    except Unauthenticated:
        here = urlencode({"redirect": f"/oauth2/authorize?{urlencode(query.multi_items())}"})
        return _redirect(f"/det/login?{here}")
    rights = await rights_of(app.db, app.cluster.security.authz, principal)
    if principal.task is not None:
        raise OAuthError("access_denied", "not with the token of a task: log in to do this")
    rights.require(Action.ADMINISTRATE_USERS)
    client_id, redirect_uri = _text(query.get("client_id", "")), query.get("redirect_uri", "")
    async with app.db.read() as connection:
        client = await clients.find_client(connection, client_id)
    if client is None:
        raise InvalidRequest("client_id: there is no such client")
    if not is_allowed(redirect_uri, client["domain"]):
        raise InvalidRequest(f"redirect_uri: must be an address of https in the domain {client['domain']}")
    state = {"state": query["state"]} if "state" in query else {}
    if query.get("response_type") != "code":
        return _redirect(with_query(redirect_uri, error="unsupported_response_type", **state))
    who = {"user_id": principal.user_id, "username": principal.username}
    with recorded(replace(request_of(_AUTHORIZE, call), **who, details={"client_id": client_id})):
        code = await tokens.new_code(app.db, client_id, redirect_uri, now=app.clock.now())
    return _redirect(with_query(redirect_uri, code=code, **state))


@_with_oauth
async def token(call: AnyCall) -> RawResponse:
    """Tokens for a code, for a refresh token, or for a client in its own name."""
    try:
        return await _grant(call)
    except OAuthError as error:
        headers = {**_NO_STORE, **({"WWW-Authenticate": 'Basic realm="OAuth"'} if error.status == 401 else {})}
        body = {"error": error.code, "error_description": str(error)}
        return _json(body, status=error.status, headers=headers)


async def _grant(call: AnyCall) -> RawResponse:
    db, now = call.app.db, call.app.clock.now()
    form = _form(call.body)
    client_id, secret = _client_of(call.headers.get("authorization", ""), form)
    await tokens.check_client(db, client_id, secret)
    match form.get("grant_type"):
        case "authorization_code":
            code, redirect_uri = form.get("code", ""), form.get("redirect_uri", "")
            granted = await tokens.for_code(db, client_id, code, redirect_uri, now=now)
        case "refresh_token":
            granted = await tokens.for_refresh(db, client_id, form.get("refresh_token", ""), now=now)
        case "client_credentials":
            granted = await tokens.for_client(db, client_id, now=now)
        case _:
            raise OAuthError(
                "unsupported_grant_type", "must be authorization_code, refresh_token or client_credentials"
            )
    body = {
        "access_token": granted.access_token,
        "token_type": "Bearer",
        "expires_in": int(tokens.ACCESS_LIFETIME.total_seconds()),
    }
    if granted.refresh_token is not None:
        body["refresh_token"] = granted.refresh_token
    return _json(body, headers=_NO_STORE)


def _form(body: bytes) -> dict[str, str]:
    """Raises OAuthError."""
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise OAuthError("invalid_request", "the request body is no form") from None
    if len({name for name, _ in fields}) < len(fields):
        raise OAuthError("invalid_request", "a field of the form is there twice")
    return {name: _text(value) for name, value in fields}


def _client_of(header: str, form: dict[str, str]) -> tuple[str, str]:
    """Id and secret, from the header or from the form (RFC 6749 2.3.1). Raises OAuthError."""
    scheme, _, given = header.partition(" ")
    if not header:
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        if scheme.lower() != "basic":
            raise ValueError(scheme)
        client_id, _, secret = b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise OAuthError("invalid_client", "Authorization: must be Basic, or the form has it all", status=401) from None
    return _text(unquote_plus(client_id)), unquote_plus(secret)


def _text(value: str) -> str:
    """Raises OAuthError for what no id can have in it."""
    if "\0" in value:
        raise OAuthError("invalid_request", "NUL characters mean nothing here")
    return value


def _redirect(address: str) -> RawResponse:
    headers = {"Location": address, "Referrer-Policy": "no-referrer", **_NO_STORE}
    return RawResponse(b"", media_type="text/plain", status=303, headers=headers)


def _json(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> RawResponse:
    return RawResponse(msgspec.json.encode(body), media_type="application/json", status=status, headers=headers or {})


ROUTES: Final = (
    Route(method="GET", path="/oauth2/clients", handler=list_clients, raw=True, summary="List the clients of OAuth"),
    Route(
        method="POST",
        path="/oauth2/clients",
        handler=add_client,
        body=AddClientRequest,
        raw=True,
        summary="Register a client of OAuth",
    ),
    Route(
        method="DELETE",
        path="/oauth2/clients/{id}",
        handler=remove_client,
        raw=True,
        summary="Remove a client of OAuth",
    ),
    Route(method="GET", path="/oauth2/authorize", handler=authorize, raw=True, summary="Authorize a client of OAuth"),
    Route(
        method="POST",
        path="/oauth2/token",
        handler=token,
        body=bytes,
        raw=True,
        summary="Issue tokens to a client of OAuth",
    ),
)
