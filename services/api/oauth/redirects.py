"""Where a client may be sent codes: to addresses in its domain (RFC 6749 3.1.2). Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from libs.errors import InvalidRequest

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def host_of_domain(domain: str) -> str:
    """The host that ``example.com`` and ``https://example.com`` name. Raises InvalidRequest."""
    parts = _split(domain if "://" in domain else f"https://{domain}")
    if parts is None or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InvalidRequest("domain: must be the name of a host, as in example.okta.com")
    return parts.hostname


def is_allowed(redirect_uri: str, domain: str) -> bool:
    """Is this an address in the domain, and nobody else's? Without TLS only where that is this very machine."""
    parts = _split(redirect_uri)
    if parts is None or not parts.hostname or parts.username or parts.fragment or not _is_plain(redirect_uri):
        return False
    host, wanted = parts.hostname, host_of_domain(domain)
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        return False
    return host == wanted or host.endswith(f".{wanted}")


def with_query(address: str, **more: str) -> str:
    """The address with more in its query."""
    parts = urlsplit(address)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *more.items()])
    return urlunsplit(parts._replace(query=query))


def _split(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _is_plain(address: str) -> bool:
    """What goes into a header, and is read by every browser in the same way."""
    return address.isascii() and address.isprintable() and "\\" not in address and " " not in address
