"""What proxies in front say of a request: believed of those that the settings name, and of nobody else.

Anybody can send ``X-Forwarded-Host``, and the host name of a request decides which pages are of this installation. So
this stands before the application: what others say is taken out of the request here, and whatever comes after may
believe what it finds. ``X-Forwarded-For`` stays, for tasks get it with the address of the peer at its end
(``services/api/proxy/headers.py``). Source: docs/reference/tasks-and-cli.md 4.2, RFC 7239 8.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network
from typing import Final, NamedTuple, cast

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

EXTENSION: Final = "resolute.forwarded"
SETTING: Final = "http.trusted_proxies"
ANYBODY: Final = "*"
_FOR: Final = b"x-forwarded-for"
_HOST: Final = b"x-forwarded-host"
_OTHERS: Final = frozenset({b"x-real-ip", b"forwarded"})
_DEFAULT_PORTS: Final = ("80", "443")
_MOST_PEERS: Final = 32

log = structlog.get_logger(__name__)


class Forwarded(NamedTuple):
    """That a request came by a proxy, or says so.

    peer          address of whoever sent it; empty where that is not known
    ignored_host  what that peer said in ``X-Forwarded-Host``, where its word does not count
    """

    peer: str
    ignored_host: str = ""


class BehindProxies:
    """Stands before an application."""

    def __init__(self, application: ASGIApp, trusted: Sequence[str]) -> None:
        """``trusted`` addresses and networks of proxies; ``*`` for all."""
        self._application = application
        # The types of uvicorn's own for the same interface.
        self._trusting = ProxyHeadersMiddleware(application, _networks(trusted))  # type: ignore[arg-type]
        self._trusted = self._trusting.trusted_hosts
        self._named: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _say_something(scope["headers"]):
            await self._application(scope, receive, send)
            return
        client = scope.get("client")
        peer = client[0] if client else ""
        extensions = scope.setdefault("extensions", {})
        if peer in self._trusted:
            extensions[EXTENSION] = Forwarded(peer)
            await cast(ASGIApp, self._trusting)(scope, receive, send)
            return
        ignored = [(name, value) for name, value in scope["headers"] if _is_said(name) and name != _FOR]
        host = dict(ignored).get(_HOST, b"").decode("latin-1")
        extensions[EXTENSION] = Forwarded(peer, host)
        if ignored:
            scope["headers"] = [header for header in scope["headers"] if header not in ignored]
            self._name(peer, ignored)
        await self._application(scope, receive, send)

    def _name(self, peer: str, ignored: Sequence[tuple[bytes, bytes]]) -> None:
        """One line for each peer: it may be a proxy that somebody forgot to name."""
        if peer not in self._named and len(self._named) < _MOST_PEERS:
            self._named.add(peer)
            names = sorted({name.decode("latin-1") for name, _ in ignored})
            log.warning("http.forwarded_ignored", peer=peer, headers=names, setting=SETTING)


def forwarded_of(scope: Scope) -> Forwarded | None:
    """None for a request of which nobody says that it came by a proxy."""
    found: Forwarded | None = scope.get("extensions", {}).get(EXTENSION)
    return found


def visited_hosts(headers: Mapping[str, str]) -> list[str]:
    """Host names, with their ports, under which the client may know this server; first the one that a proxy tells.

    headers  lower-case name -> value; behind BehindProxies
    """
    told = [headers.get("x-forwarded-host", "").partition(",")[0].strip(), headers.get("host", "").strip()]
    hosts = [host.lower() for host in told if host]
    port = headers.get("x-forwarded-port", "").strip()
    if port.isascii() and port.isdigit() and port not in _DEFAULT_PORTS:
        # That of the client, where the proxy leaves it out of the name.
        hosts = [f"{host}:{port}" for host in hosts if ":" not in host.rpartition("]")[2]] + hosts
    return hosts


def _networks(proxies: Iterable[str]) -> list[str]:
    """What uvicorn takes: networks as such, and everybody alone.

    What is no address has been passed over since before it was looked at, so it keeps no api from starting.
    """
    networks = []
    for proxy in proxies:
        if proxy == ANYBODY:
            return [ANYBODY]
        try:
            networks.append(str(ip_network(proxy, strict=False)))
        except ValueError as error:
            log.warning("http.proxy_ignored", setting=SETTING, error=str(error))
    return networks


def _say_something(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    # Every request comes by here, and any() with a generator takes twice the time.
    for name, _ in headers:  # noqa: SIM110
        if name.startswith(b"x-forwarded-") or name in _OTHERS:
            return True
    return False


def _is_said(name: bytes) -> bool:
    return name.startswith(b"x-forwarded-") or name in _OTHERS
