"""Responses of the proxy itself, in place of a task's: refusals, redirects, and a page while the task starts."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from services.api.http.errors import ErrorReply
from services.api.http.exchange import Exchange, send_error
from services.api.http.replies.page import HTML, page
from services.api.http.replies.reply import send_bytes
from services.api.proxy.credentials import PROXY_COOKIE, OfferedIn
from services.api.proxy.gate import LetThrough
from services.api.proxy.headers import Finish, Headers, to_client
from services.api.proxy.pages.hosts import VisitedHost
from services.api.proxy.paths import ProxyPath
from services.api.proxy.services import ProxiedService

LOGIN_PATH: Final = "/det/login"
RELOAD_S: Final = 2
TICKET: Final = "resolute_ticket"
"""In the query of a redirect to the host name of tasks."""
_KEEP_NOTHING: Final = ((b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))


async def refuse_unknown(exchange: Exchange, service_id: str) -> None:
    """There is no such service, or not any more."""
    reply = ErrorReply(HTTPStatus.NOT_FOUND, 5, "NotFound", f"service not found: {service_id}")
    await send_error(exchange, reply, stream=False, raw=True)


async def redirect_to_base(exchange: Exchange, path: ProxyPath) -> None:
    """To the path with a slash at its end, which all links in pages of the service rely on."""
    await _redirect(exchange, _with_query(exchange, path.base), HTTPStatus.TEMPORARY_REDIRECT)


async def redirect_to_login(exchange: Exchange) -> None:
    """And from there back to here."""
    here = _with_query(exchange, exchange.scope["raw_path"].decode("latin-1"))
    await _redirect(exchange, f"{LOGIN_PATH}?redirect={quote(here, safe='')}", HTTPStatus.SEE_OTHER)


async def say_not_reached(exchange: Exchange, service: ProxiedService) -> None:
    """Nobody answers at the port: in a page that asks again by itself for whoever reads pages."""
    port = service.port.port
    if service.allocation is None or service.target is None:
        words = f"task {service.task_id} has not started yet"
    else:
        words = f"task {service.task_id} does not answer at its port {port} yet"
    if not wants_page(exchange):
        reply = ErrorReply(HTTPStatus.BAD_GATEWAY, 14, "Unavailable", words)
        await send_error(exchange, reply, stream=False, raw=True)
        return
    head = f'<meta http-equiv="refresh" content="{RELOAD_S}">'
    body = f"<h1>One moment</h1>\n<p>{html.escape(words[0].upper() + words[1:])}. This page asks again by itself.</p>"
    headers = [(b"content-type", HTML.encode()), (b"cache-control", b"no-store"), *exchange.reply_headers()]
    await send_bytes(exchange.send, page("One moment", body, head=head), status=502, headers=headers)


async def send_response(
    exchange: Exchange, status: int, headers: Headers, pieces: AsyncIterator[bytes], finish: Finish
) -> None:
    """Send what the task has responded, as it comes."""
    start = {"type": "http.response.start", "status": status, "headers": finish(to_client(headers, status=status))}
    await exchange.send_with_defaults(start)
    async for piece in pieces:
        await exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})


def cookie_for(exchange: Exchange, path: ProxyPath, admission: LetThrough) -> list[tuple[bytes, bytes]]:
    """Keeps what the query of a link has opened open for the rest of its page, which links without it."""
    offer = admission.offer
    if offer is None or offer.source is not OfferedIn.QUERY:
        return []
    return [_cookie(exchange, path, offer.token)]


def scheme_of(exchange: Exchange) -> str:
    """That the client used, as far as trusted proxies tell; some of these say ``wss`` of websockets."""
    return "https" if exchange.scope["scheme"] in ("https", "wss") else "http"


async def redirect_to_tasks(exchange: Exchange, place: VisitedHost, *, ticket: str = "", token: str = "") -> None:
    """To the same page under the host name of tasks.

    ticket  for the login of the browser
    token   a proxy token, where the query has none
    """
    more = [f"{TICKET}={ticket}"] if ticket else [f"token={token}"] if token else []
    query = "&".join([*filter(None, [exchange.scope["query_string"].decode("latin-1")]), *more])
    path = exchange.scope["raw_path"].decode("latin-1")
    await _redirect(exchange, f"{place.tasks}{path}{'?' if query else ''}{query}", HTTPStatus.SEE_OTHER, _KEEP_NOTHING)


async def redirect_to_main(exchange: Exchange, place: VisitedHost) -> None:
    """To the login under the main host name, and from there to the same page."""
    here = _with_query(exchange, exchange.scope["raw_path"].decode("latin-1"))
    location = f"{place.main[0]}{LOGIN_PATH}?relayState={quote(here, safe='')}"
    await _redirect(exchange, location, HTTPStatus.SEE_OTHER, _KEEP_NOTHING)


async def exchange_ticket(exchange: Exchange, path: ProxyPath, *, cookie: str) -> None:
    """To the same page without its ticket, with a cookie for the path of the service in its place."""
    pairs = exchange.scope["query_string"].decode("latin-1").split("&")
    query = "&".join(pair for pair in pairs if pair and not pair.startswith(f"{TICKET}="))
    location = exchange.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    given = [_cookie(exchange, path, cookie)] if cookie else []
    await _redirect(exchange, location, HTTPStatus.SEE_OTHER, [*_KEEP_NOTHING, *given])


def _cookie(exchange: Exchange, path: ProxyPath, value: str) -> tuple[bytes, bytes]:
    secure = "; Secure" if scheme_of(exchange) == "https" else ""
    cookie = f"{PROXY_COOKIE}={value}; Path={cookie_path(path)}; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", cookie.encode("latin-1")


def cookie_path(path: ProxyPath) -> str:
    """As ``Set-Cookie`` has it."""
    return quote(path.base, safe="/:%")


def wants_page(exchange: Exchange) -> bool:
    """Whether a person looks at the answer, in a browser."""
    return "text/html" in exchange.headers.get("accept", "")


async def _redirect(exchange: Exchange, location: str, status: HTTPStatus, more: Headers = ()) -> None:
    headers = [(b"location", location.encode("latin-1")), *more, *exchange.reply_headers()]
    await send_bytes(exchange.send, b"", status=status, headers=headers)


def _with_query(exchange: Exchange, path: str) -> str:
    query = exchange.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
