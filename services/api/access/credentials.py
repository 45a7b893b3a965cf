"""Credentials of a request: the token found among its headers and cookies; sessions.py decides what it is worth.

Source: docs/reference/platform.md 2.2 (precedence), docs/reference/tasks-and-cli.md 1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from libs.errors import Unauthenticated

AUTH_COOKIE: Final = "auth"
HOST_COOKIE: Final = "__Host-auth"
"""The same over HTTPS: browsers take a cookie of such a name from this very host only (RFC 6265bis 4.1.3.2), so that no
page of another host of the domain can replace it."""
LOGIN_COOKIES: Final = frozenset({AUTH_COOKIE, HOST_COOKIE})
USER_TOKEN_HEADER: Final = "grpc-metadata-x-user-token"  # noqa: S105  (a header's name)
ALLOCATION_TOKEN_HEADER: Final = "grpc-metadata-x-allocation-token"  # noqa: S105  (a header's name)


class TokenKind(Enum):
    USER = "user"
    ALLOCATION = "allocation"


class Credentials(Struct, frozen=True):
    """A token and the kind of session it claims to belong to; nothing is verified yet.

    of_cookie  browsers send it with requests of any page
    """

    token: str
    kind: TokenKind
    of_cookie: bool = False


def find_credentials(headers: Mapping[str, str], *, allow_allocation: bool = True) -> Credentials:
    """The token that counts: ``x-user-token``, then ``Authorization`` (or the cookie), then the allocation token.

    headers           lower-case name -> value
    allow_allocation  routes outside of /api/v1 do not know allocation tokens
    Raises Unauthenticated: ``token missing``, or ``invalid credentials`` for a malformed header.
    """
    if user := headers.get(USER_TOKEN_HEADER):
        return Credentials(_bearer(user), TokenKind.USER)
    if authorization := headers.get("authorization"):
        return Credentials(_bearer(authorization), TokenKind.USER)
    if cookie := _auth_cookie(headers.get("cookie", "")):
        return Credentials(cookie, TokenKind.USER, of_cookie=True)
    if allow_allocation and (allocation := headers.get(ALLOCATION_TOKEN_HEADER)):
        return Credentials(_bearer(allocation), TokenKind.ALLOCATION)
    raise Unauthenticated("token missing")


def _bearer(value: str) -> str:
    scheme, _, token = value.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise Unauthenticated("invalid credentials")
    return token


def _auth_cookie(header: str) -> str:
    if AUTH_COOKIE not in header:
        return ""
    parts = [part.strip().partition("=") for part in header.split(";")]
    return login_of((name, value.strip().strip('"')) for name, _, value in parts)


def login_of(cookies: Iterable[tuple[str, str]]) -> str:
    """The token that counts of the cookies of logins, as names and values; empty when there is none.

    Of two with the same name that differ none counts: a page of a task may have set one for the whole domain.
    """
    found: dict[str, set[str]] = {}
    for name, value in cookies:
        if name in LOGIN_COOKIES:
            found.setdefault(name, set()).add(value)
    values = found.get(HOST_COOKIE) or found.get(AUTH_COOKIE) or set()
    return values.pop() if len(values) == 1 else ""


def login_cookie(token: str, *, expires: str, is_secure: bool) -> str:
    """``Set-Cookie`` of a login; with an empty token, of its end.

    is_secure  whether the browser came by HTTPS
    """
    name, secure = (HOST_COOKIE, "; Secure") if is_secure else (AUTH_COOKIE, "")
    return f"{name}={token}; Path=/; Expires={expires}; HttpOnly; SameSite=Lax{secure}"
