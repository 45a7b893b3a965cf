"""Login at an OpenID Connect provider: to it, and back from it (docs/reference/platform.md 2.5).

Browsers are shown pages, others JSON. What the provider has vouched for and is refused here is in the audit log; what
never got that far is in the log of the service.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from email import utils
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import structlog

from libs.db.audit.records import AuditedRequest, recorded, write_record
from libs.errors import FailedPrecondition, NotFound, ResoluteError, Unauthenticated
from libs.tokens import new_token
from services.api.access.credentials import login_cookie
from services.api.actions.users.sessions import SESSION_LIFETIME
from services.api.actions.users.sso import log_in_remote
from services.api.app import App
from services.api.http.audited_call import LONGEST
from services.api.http.call import Call
from services.api.http.errors import classify
from services.api.http.replies.page import HTML, page
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import HandlerResult, Route
from services.api.oidc.attempts import LIFETIME, STATE_COOKIE, begin_attempt, resume_attempt
from services.api.oidc.identity import Identity, identity_of
from services.api.queries.users.users import user_by_id
from services.api.wire.base import timestamp
from services.api.wire.users.sso import CallbackQuery, LegacyUser, SsoQuery

if TYPE_CHECKING:
    from services.api.oidc.provider import OidcProvider

CLI: Final = "cli"
CLI_ADDRESS: Final = "http://localhost:49176"
"""Where ``det auth login`` waits for the token."""
_KEEP_NOTHING: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}

log = structlog.get_logger(__name__)


class NoProvider(NotFound):
    def __init__(self) -> None:
        Exception.__init__(self, "there is no login provider; an administrator sets one up with oidc")


async def to_provider(call: Call[App, SsoQuery, None]) -> HandlerResult:
    try:
        provider = _provider(call)
        attempt = begin_attempt(secret=new_token(), relay_state=call.query.relay_state, now=call.app.clock.now())
        url = await provider.authorization_url(attempt)
    except ResoluteError as error:
        return _refusal(call, error)
    return _redirect(url, _state_cookie(provider, attempt.cookie, int(LIFETIME.total_seconds())))


async def callback(call: Call[App, CallbackQuery, None]) -> HandlerResult:
    try:
        return await _callback(call)
    except ResoluteError as error:
        log.warning("login.failed", address=call.address, by="oidc", reason=str(error)[:300])
        return _refusal(call, error)


async def _callback(call: Call[App, CallbackQuery, None]) -> RawResponse:
    provider, query, now = _provider(call), call.query, call.app.clock.now()
    attempt = resume_attempt(_cookie(call.headers), state=query.state, now=now)
    if query.error:
        raise Unauthenticated(f"the provider refuses: {query.error} {query.error_description}"[:300].strip())
    if not query.code:
        raise FailedPrecondition("missing parameter: code")
    identity = identity_of(await provider.claims(query.code, attempt), provider.config)
    token = await _log_in(call, provider, identity)
    if attempt.relay_state == CLI:
        return _redirect(f"{CLI_ADDRESS}?token={token}", _state_cookie(provider, "", 0))
    expires = utils.format_datetime(now + SESSION_LIFETIME, usegmt=True)
    is_secure = provider.config.base_url.startswith("https:")
    relayed = f"?relayState={quote(attempt.relay_state, safe='')}" if attempt.relay_state else ""
    cookie = login_cookie(token, expires=expires, is_secure=is_secure)
    return _redirect(f"{provider.config.base_url}/det/login{relayed}", cookie)


async def _log_in(call: Call[App, Any, Any], provider: OidcProvider, identity: Identity) -> str:
    """The token of a new session; whatever comes of it is in the audit log."""
    try:
        with recorded(_audited(call, provider, identity)):
            provisions, now = provider.config.auto_provision_users, call.app.clock.now()
            return (await log_in_remote(call.app.db, identity, provisions=provisions, now=now))[0]
    except ResoluteError as error:
        with recorded(_audited(call, provider, identity, refused=str(error))) as recording:
            async with call.app.db.transaction() as connection:
                await write_record(connection, recording)
        raise


def _audited(call: Call[App, Any, Any], provider: OidcProvider, identity: Identity, **more: str) -> AuditedRequest:
    details: dict[str, Any] = {}
    if identity.groups is not None:
        said = sorted(name for name in identity.groups if name.isprintable())
        details["groups"] = [name[:LONGEST] for name in said[:LONGEST]]
    return AuditedRequest(
        user_id=None,
        username=identity.username[:LONGEST],
        allocation_id=None,
        address=call.address,
        request_id=call.request_id,
        action="GET /oidc/callback",
        target={},
        details={"provider": provider.config.provider, **details, **more},
    )


async def legacy_me(call: Call[App, None, None]) -> LegacyUser:
    async with call.app.db.read() as connection:
        row = await user_by_id(connection, call.principal.user_id)
    return LegacyUser(
        id=row["id"],
        username=row["username"],
        display_name=row["display_name"],
        admin=row["admin"],
        active=row["active"],
        remote=row["remote"],
        modified_at=timestamp(row["modified_at"]),
    )


def _provider(call: Call[App, Any, Any]) -> OidcProvider:
    if call.app.oidc is None:
        raise NoProvider
    return call.app.oidc


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(STATE_COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _state_cookie(provider: OidcProvider, value: str, lifetime_s: int) -> str:
    secure = "; Secure" if provider.config.base_url.startswith("https:") else ""
    # Lax, and not Strict: the provider's page leads back here, and the cookie has to come along.
    return f"{STATE_COOKIE}={value}; Path=/oidc; Max-Age={lifetime_s}; HttpOnly; SameSite=Lax{secure}"


def _redirect(url: str, cookie: str) -> RawResponse:
    headers = {"Location": url, "Set-Cookie": cookie, **_KEEP_NOTHING}
    return RawResponse(b"", media_type="text/plain", status=303, headers=headers)


def _refusal(call: Call[App, Any, Any], error: ResoluteError) -> RawResponse:
    """Raises ``error`` for whoever is no browser."""
    if "text/html" not in call.headers.get("accept", ""):
        raise error
    reply = classify(error, request_id=call.request_id)
    body = (
        f"<h1>The login did not work</h1>\n<p>{html.escape(reply.message)}</p>\n"
        '<p><a href="/oidc/sso">Try again</a>, or <a href="/det/login?password">log in with a password</a>.</p>'
    )
    policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    headers = {name.decode(): value.decode() for name, value in reply.headers}
    return RawResponse(
        page("Log in", body), media_type=HTML, status=reply.status, headers={**headers, **policy, **_KEEP_NOTHING}
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/oidc/sso",
        handler=to_provider,
        query=SsoQuery,
        raw=True,
        summary="Begin a login at an identity provider",
    ),
    Route(
        method="GET",
        path="/oidc/callback",
        handler=callback,
        query=CallbackQuery,
        raw=True,
        summary="Complete a login at an identity provider",
    ),
    Route(
        method="GET",
        path="/users/me",
        handler=legacy_me,
        raw=True,
        response=LegacyUser,
        summary="Get the current user in the former format",
    ),
)
