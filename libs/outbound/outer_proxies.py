"""Proxy through which an administrator lets this process out: ``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY``."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from libs.outbound.addresses import Network
from libs.outbound.destinations import Authority
from libs.outbound.proxy_requests import ProxyRequest


class OuterProxy(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    is_tls: bool
    credentials: str = ""

    def connect_to(self, to: Authority) -> bytes:
        """The request for a tunnel."""
        lines = (f"CONNECT {to} HTTP/1.1", f"Host: {to}", *self._authorization)
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def head_of(self, request: ProxyRequest) -> bytes:
        """The head of a request for ``http://``, which names its destination."""
        return request.head_for(f"http://{request.to}{request.path}", *self._authorization)

    @property
    def _authorization(self) -> tuple[str, ...]:
        return (f"Proxy-Authorization: Basic {self.credentials}",) if self.credentials else ()


def outer_proxy(scheme: Literal["http", "https"], to: Authority) -> OuterProxy | None:
    """The proxy for connections to ``to``; None where there is none, or not for this host."""
    from urllib.request import getproxies_environment  # noqa: PLC0415  for connections that leave alone

    proxies = getproxies_environment()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or _is_excepted(to, proxies):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    named = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    is_tls = parts.scheme == "https"
    return OuterProxy(
        host=parts.hostname,
        port=parts.port or (443 if is_tls else 80),
        is_tls=is_tls,
        credentials=b64encode(named.encode()).decode(),
    )


def _is_excepted(to: Authority, proxies: dict[str, str]) -> bool:
    """Whether ``NO_PROXY`` has the host, or a network that it is in."""
    from urllib.request import proxy_bypass  # noqa: PLC0415  loaded by now

    if proxy_bypass(str(to), proxies):
        return True
    try:
        address = ip_address(to.host)
    except ValueError:
        return False
    return any(address in network for network in _networks_of(proxies.get("no", "")))


def _networks_of(no_proxy: str) -> Iterator[Network]:
    for entry in no_proxy.split(","):
        with suppress(ValueError):  # of a name
            yield ip_network(entry.strip(), strict=False)
