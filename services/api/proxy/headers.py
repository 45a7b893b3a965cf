"""Headers of proxied requests and responses: what goes through, and what is between us and one side only. Pure.

Credentials of the platform stay here: the server in a task is somebody's program, and whoever visits it does not mean
to lend it their login. Source: docs/reference/tasks-and-cli.md 4.2, RFC 9110 7.6.1 (hop-by-hop).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from services.api.access.credentials import ALLOCATION_TOKEN_HEADER, USER_TOKEN_HEADER
from services.api.proxy.credentials import COOKIES

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Lower-case names, and values; in the order in which they came, repeated ones too."""

Finish: TypeAlias = Callable[[Headers], list[tuple[bytes, bytes]]]
"""What a client gets of the headers of a response, after ``to_client``."""

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_TO_TASK: Final = _HOP_BY_HOP | {USER_TOKEN_HEADER.encode(), ALLOCATION_TOKEN_HEADER.encode(), b"expect"}
_AUTHORIZATION: Final = b"authorization"
_COOKIE: Final = b"cookie"
_FORWARDED_FOR: Final = b"x-forwarded-for"
_REAL_IP: Final = b"x-real-ip"
_FORWARDED_PROTO: Final = b"x-forwarded-proto"
_LOOKED_AT: Final = _NOT_TO_TASK | {_AUTHORIZATION, _COOKIE, _FORWARDED_FOR, _REAL_IP, _FORWARDED_PROTO}
"""All others go to the task, unless the connection names them."""
_NOTHING: Final[frozenset[bytes]] = frozenset()


def to_task(headers: Headers, *, client: str, scheme: str) -> list[tuple[bytes, bytes]]:
    """What the task gets of a request's headers.

    client  the address of whoever sent it; empty when that is not known
    scheme  that they used: http or https
    """
    named = _named_by_connection(headers)
    kept = []
    before = []
    is_real_ip_known = is_scheme_known = False
    for header in headers:
        name, value = header
        if name not in _LOOKED_AT:
            if name not in named:
                kept.append(header)
            continue
        if name in _NOT_TO_TASK or name in named or _is_bearer(name, value):
            continue
        if name == _COOKIE:
            if value := _without_ours(value):
                kept.append((name, value))
            continue
        if name == _FORWARDED_FOR and client:
            before.append(value)
            continue
        is_real_ip_known = is_real_ip_known or name == _REAL_IP
        is_scheme_known = is_scheme_known or name == _FORWARDED_PROTO
        kept.append(header)
    if client:
        address = client.encode("latin-1")
        kept.append((_FORWARDED_FOR, _forwarded_for(before, address) if before else address))
        if not is_real_ip_known:
            kept.append((_REAL_IP, address))
    if not is_scheme_known:
        kept.append((_FORWARDED_PROTO, scheme.encode("latin-1")))
    return kept


def to_client(headers: Headers, *, status: int) -> list[tuple[bytes, bytes]]:
    """What the client gets of a response's headers."""
    headers = [(name.lower(), value) for name, value in headers]
    named = _named_by_connection(headers)
    kept = [header for header in headers if header[0] not in _HOP_BY_HOP and header[0] not in named]
    if status in (204, 304):  # the length says how long the body would be, and the server waits for a body then
        kept = [header for header in kept if header[0] != b"content-length"]
    return kept


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    named = [value for name, value in headers if name == b"connection"]
    if not named:
        return _NOTHING
    return frozenset(token.strip().lower() for value in named for token in value.split(b","))


def _is_bearer(name: bytes, value: bytes) -> bool:
    return name == _AUTHORIZATION and value[:7].lower() == b"bearer "


def _forwarded_for(before: Iterable[bytes], client: bytes) -> bytes:
    """The list that came, up to the client; servers in tasks believe what is last in it.

    Where a proxy in front is trusted, the client was found in this very list, and what is behind it are such proxies.
    Anywhere else a client that names itself can only shorten what it made up.
    """
    hops = [hop for value in before for part in value.split(b",") if (hop := part.strip())]
    addresses = [_address(hop) for hop in hops]
    if client in addresses:
        del hops[len(hops) - 1 - addresses[::-1].index(client) :]
    return b", ".join([*hops, client])


def _address(hop: bytes) -> bytes:
    """Without a port."""
    if hop.startswith(b"["):
        return hop[1:].partition(b"]")[0]
    address, colon, _ = hop.partition(b":")
    return address if hop.count(b":") == 1 and colon else hop


def _without_ours(cookies: bytes) -> bytes:
    parts = [part.strip() for part in cookies.split(b";")]
    return b"; ".join(part for part in parts if part.partition(b"=")[0].decode("latin-1") not in COOKIES)
