"""Requests from pages of our own: browsers add the cookie of a login to what any page makes them send.

Pages of tasks are of the same site as ours, so ``SameSite`` does not keep the cookie from them. A request that changes
something, or opens a websocket, and is authorised by the cookie therefore has to say that it comes from a page of this
very address: by ``Origin`` (RFC 6454) or ``Sec-Fetch-Site`` (W3C Fetch Metadata), neither of which a page can choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

import structlog

from libs.errors import PermissionDenied
from services.api.access.forwarded import SETTING, Forwarded, visited_hosts

_CHANGE_NOTHING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 200
_REFUSAL: Final = (
    "a request that changes something with the cookie of a login has to come from a page of this address (Origin or "
    "Sec-Fetch-Site); send the token in an Authorization header instead"
)

log = structlog.get_logger(__name__)


def require_own_page(method: str, headers: Mapping[str, str], forwarded: Forwarded | None = None) -> None:
    """For requests that are authorised by the cookie. Raises PermissionDenied.

    headers  lower-case name -> value
    """
    if method in _CHANGE_NOTHING or _is_own(headers):
        return
    raise _refused(_REFUSAL, headers, forwarded)


def require_own_websocket(what: str, headers: Mapping[str, str], forwarded: Forwarded | None = None) -> None:
    """For websockets that a page may have opened; other programs send no ``Origin``. Raises PermissionDenied.

    what  a page of another site may not do
    """
    if "origin" in headers and not _is_own(headers):
        raise _refused(f"a page of another site may not {what}", headers, forwarded)


def _is_own(headers: Mapping[str, str]) -> bool:
    if headers.get("sec-fetch-site") == "same-origin":
        return True
    try:
        origin = urlsplit(headers.get("origin", ""))
        return any(_is_same(origin, host) for host in visited_hosts(headers))
    except ValueError:
        return False


def _is_same(origin: SplitResult, host: str) -> bool:
    """Whether both have the same name and port. Raises ValueError for what is no address."""
    default = _DEFAULT_PORTS.get(origin.scheme)
    visited = urlsplit(f"//{host}")
    return bool(origin.hostname) and (origin.hostname, origin.port or default) == (
        visited.hostname,
        visited.port or default,
    )


def _refused(why: str, headers: Mapping[str, str], forwarded: Forwarded | None) -> PermissionDenied:
    """Browsers show nobody the answer to a websocket, so the log has it too."""
    message = f"{why}{_difference(headers, forwarded)}"
    log.warning("http.page_refused", reason=message, peer=forwarded.peer if forwarded else "")
    return PermissionDenied(message)


def _difference(headers: Mapping[str, str], forwarded: Forwarded | None) -> str:
    """What the browser said and what arrived, and the most likely reason where these differ only by a proxy."""
    if "origin" not in headers:
        return ""
    hosts = ", ".join(visited_hosts(headers)) or "no host name"
    said = f": Origin is {headers['origin'][:_LONGEST]}, and the request came to {hosts[:_LONGEST]}"
    if forwarded is not None and forwarded.ignored_host:
        ignored = forwarded.ignored_host[:_LONGEST]
        return f"{said}. X-Forwarded-Host ({ignored}) counts for nothing, since {SETTING} does not name who sent it"
    return f"{said}. A proxy in between has to pass Host on, or say X-Forwarded-Host and be named in {SETTING}"
