"""Where the token of a request is looked for, and in which order (docs/reference/platform.md 2.2)."""

from __future__ import annotations

import pytest

from libs.errors import Unauthenticated
from services.api.access.credentials import Credentials, TokenKind, find_credentials

USER, ALLOCATION = TokenKind.USER, TokenKind.ALLOCATION
X_USER = {"grpc-metadata-x-user-token": "Bearer x-user"}
BEARER = {"authorization": "Bearer bearer"}
COOKIE = {"cookie": "theme=dark; auth=cookie; other=1"}
TASK = {"grpc-metadata-x-allocation-token": "Bearer task"}

FOUND = [
    (X_USER | BEARER | COOKIE | TASK, "x-user", USER),
    (BEARER | COOKIE | TASK, "bearer", USER),
    (COOKIE | TASK, "cookie", USER),
    (TASK, "task", ALLOCATION),
    ({"authorization": "bearer  spaced "}, "spaced", USER),
    ({"cookie": 'auth="quoted"'}, "quoted", USER),
    ({"cookie": "auth=; x=1"} | TASK, "task", ALLOCATION),
    ({"cookie": "auth=twice; auth=twice"}, "twice", USER),
    ({"cookie": "auth=of-a-page; __Host-auth=mine"}, "mine", USER),
    ({"cookie": "auth=mine; auth=of-a-page"} | TASK, "task", ALLOCATION),
    ({"cookie": "xauth=1"} | TASK, "task", ALLOCATION),
]


@pytest.mark.parametrize(("headers", "token", "kind"), FOUND)
def test_the_token_that_counts(headers: dict[str, str], token: str, kind: TokenKind) -> None:
    is_of_cookie = kind is USER and not headers.keys() & {"authorization", "grpc-metadata-x-user-token"}
    assert find_credentials(headers) == Credentials(token, kind, of_cookie=is_of_cookie)


@pytest.mark.parametrize("value", ["token", "Basic abc", "Bearer", "Bearer ", "Bearer a b"])
@pytest.mark.parametrize("header", ["authorization", "grpc-metadata-x-user-token", "grpc-metadata-x-allocation-token"])
def test_malformed_headers_are_no_fallback_to_weaker_ones(header: str, value: str) -> None:
    with pytest.raises(Unauthenticated, match=r"^invalid credentials$"):
        find_credentials({header: value})


def test_malformed_authorization_does_not_fall_back_to_the_cookie() -> None:
    with pytest.raises(Unauthenticated, match=r"^invalid credentials$"):
        find_credentials({"authorization": "nonsense"} | COOKIE | TASK)


def test_no_token() -> None:
    with pytest.raises(Unauthenticated, match=r"^token missing$"):
        find_credentials({"cookie": "theme=dark"})


def test_tokens_of_allocations_do_not_count_everywhere() -> None:
    with pytest.raises(Unauthenticated, match=r"^token missing$"):
        find_credentials(TASK, allow_allocation=False)
