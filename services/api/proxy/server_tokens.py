"""Tokens of servers in tasks: the proxy token of a user is replaced by what the server in the task asks for. Pure.

So every user of a notebook has a link of their own, and none of them opens it any longer than its user may.
"""

from __future__ import annotations

from urllib.parse import unquote_plus

from starlette.types import Scope

from services.api.proxy.headers import Headers


def put_server_token(scope: Scope, *, offered: str, server_token: str) -> None:
    """Replace ``offered`` in the query and in the header of a request."""
    scope["query_string"] = in_query(scope["query_string"], offered, server_token)
    scope["headers"] = in_headers(scope["headers"], offered, server_token)


def in_query(query: bytes, offered: str, server_token: str) -> bytes:
    if b"token=" not in query:
        return query
    pairs = query.split(b"&")
    wanted = f"token={server_token}".encode("latin-1")
    return b"&".join(wanted if unquote_plus(pair.decode("latin-1")) == f"token={offered}" else pair for pair in pairs)


def in_headers(headers: Headers, offered: str, server_token: str) -> list[tuple[bytes, bytes]]:
    return [
        (name, f"token {server_token}".encode("latin-1"))
        if name == b"authorization" and _is_token(value, offered)
        else (name, value)
        for name, value in headers
    ]


def _is_token(value: bytes, offered: str) -> bool:
    scheme, _, token = value.decode("latin-1").partition(" ")
    return scheme.lower() == "token" and token.strip() == offered
