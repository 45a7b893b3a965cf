"""Headers of tasks' responses that reach beyond the task: cookies, and who may show its pages in a frame. Pure.

Every task's cookies are for its own path. None has a name that is ours, or a task could log in whoever looks at it.
"""

from __future__ import annotations

from typing import Final

from services.api.access.credentials import AUTH_COOKIE
from services.api.oidc.attempts import STATE_COOKIE
from services.api.proxy.credentials import PROXY_COOKIE
from services.api.proxy.headers import Headers
from services.api.proxy.pages.hosts import HostRole, VisitedHost

_OURS: Final = frozenset({AUTH_COOKIE, PROXY_COOKIE, STATE_COOKIE})
_REACHES_BEYOND: Final = frozenset({b"clear-site-data", b"service-worker-allowed"})
_POLICY: Final = b"content-security-policy"
_FRAMES: Final = b"x-frame-options"


def confined(headers: Headers, *, base: str, place: VisitedHost) -> list[tuple[bytes, bytes]]:
    """What the client gets of a task's response.

    headers  names in lower case
    base     path of the service as the client spells it
    """
    kept = []
    for name, value in headers:
        if name in _REACHES_BEYOND:
            continue
        if name == b"set-cookie":
            if cookie := confined_cookie(value.decode("latin-1"), base=base):
                kept.append((name, cookie.encode("latin-1")))
        elif place.role is HostRole.TASKS and name == _FRAMES:
            continue
        elif place.role is HostRole.TASKS and name == _POLICY:
            if policy := _without_ancestors(value):
                kept.append((name, policy))
        else:
            kept.append((name, value))
    return [*kept, *policies(place)]


def policies(place: VisitedHost) -> list[tuple[bytes, bytes]]:
    """Of every response below ``/proxy/``: pages of the main address may show it; there it is no page of that address.

    What browsers open is served under the host name of tasks. Should something that a browser shows be taken for a
    request of a program all the same, it is in a sandbox.
    """
    if place.role is HostRole.TASKS:
        return [(_POLICY, f"frame-ancestors 'self' {' '.join(place.main)}".encode("latin-1"))]
    return [(_POLICY, b"sandbox")] if place.role is HostRole.MAIN else []


def confined_cookie(cookie: str, *, base: str) -> str:
    """``Set-Cookie`` for the path of the service and this host alone; empty when the cookie has a name of ours."""
    pair, *attributes = [part.strip() for part in cookie.split(";")]
    name = pair.partition("=")[0].strip()
    if name.lower() in _OURS or name.lower().startswith(("__host-", "__secure-")):
        return ""
    kept = [each for each in attributes if each.partition("=")[0].strip().lower() not in ("path", "domain")]
    paths = [each.partition("=")[2].strip() for each in attributes if each.partition("=")[0].strip().lower() == "path"]
    path = paths[-1] if paths and paths[-1].startswith(base) else base
    return "; ".join([pair, f"Path={path}", *kept])


def _without_ancestors(policy: bytes) -> bytes:
    """Of several policies in one header each counts, so each is without it."""
    return b", ".join(
        b"; ".join(each for part in one.split(b";") if (each := part.strip()) and not _is_ancestors(each))
        for one in policy.split(b",")
    ).strip(b", ")


def _is_ancestors(directive: bytes) -> bool:
    return directive.partition(b" ")[0].lower() == b"frame-ancestors"
