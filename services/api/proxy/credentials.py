"""Credentials of a proxied request: the tokens that it brings, in the order in which they are tried. Pure.

Requests to tasks bring credentials of two kinds of places: ours, and the user's server in the task, which may use the
same headers. So one that is not ours is no error by itself; what else the request brings is tried then.
Source: docs/reference/tasks-and-cli.md 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from services.api.access.credentials import LOGIN_COOKIES, login_of

PROXY_COOKIE: Final = "proxy_token"
"""Holds a proxy token, for one path; set after a request that had the token in its query."""
COOKIES: Final = LOGIN_COOKIES | {PROXY_COOKIE}
_MOST_QUERY_FIELDS: Final = 1000
_MOST_COOKIES: Final = 10


class OfferedIn(Enum):
    QUERY = auto()
    HEADER = auto()
    COOKIE = auto()
    """Browsers add it to what other sites make them send."""


class Offer(NamedTuple):
    """A token; nothing is verified yet.

    is_proxy_token  what libs/tasks/proxy_tokens.py issues; otherwise a session of a user
    """

    token: str
    is_proxy_token: bool
    source: OfferedIn


def offers_of(headers: Iterable[tuple[bytes, bytes]], query_string: bytes) -> tuple[Offer, ...]:
    """All tokens that a request brings, the one that counts first."""
    authorization = ""
    logins: list[tuple[str, str]] = []
    of_pages: list[str] = []
    for name, value in headers:
        if name == b"authorization":
            authorization = value.decode("latin-1")
        elif name == b"cookie":
            for cookie, content in _cookies(value.decode("latin-1")):
                if cookie in LOGIN_COOKIES:
                    logins.append((cookie, content))
                else:
                    of_pages.append(content)  # those of longer paths first; pages of tasks may have set others
    offers = []
    if b"token=" in query_string:
        offers += [Offer(token, True, OfferedIn.QUERY) for token in _in_query(query_string)]
    if authorization:
        scheme, _, token = authorization.partition(" ")
        scheme, token = scheme.lower(), token.strip()
        if token and scheme in ("token", "bearer"):
            offers.append(Offer(token, scheme == "token", OfferedIn.HEADER))
    if session := login_of(logins):
        offers.append(Offer(session, False, OfferedIn.COOKIE))
    offers += [Offer(of_page, True, OfferedIn.COOKIE) for of_page in of_pages[:_MOST_COOKIES] if of_page]
    return tuple(offers)


def _in_query(query_string: bytes) -> list[str]:
    """The first token of a query, if there is one."""
    try:
        fields = parse_qs(query_string.decode("latin-1"), max_num_fields=_MOST_QUERY_FIELDS)
    except ValueError:
        return []
    return fields.get("token", [])[:1]


def _cookies(header: str) -> Iterator[tuple[str, str]]:
    for part in header.split(";"):
        name, equals, value = part.strip().partition("=")
        if equals and name in COOKIES:
            yield name, value.strip().strip('"')
