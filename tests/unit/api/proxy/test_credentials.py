"""Tokens that a request brings, in the order in which they are tried."""

from __future__ import annotations

import pytest

from services.api.proxy.credentials import Offer, OfferedIn, offers_of

IN_QUERY = Offer("q", True, OfferedIn.QUERY)
OF_TASK = Offer("t", True, OfferedIn.HEADER)
OF_USER = Offer("u", False, OfferedIn.HEADER)
SESSION = Offer("s", False, OfferedIn.COOKIE)
OF_PAGE = Offer("p", True, OfferedIn.COOKIE)


@pytest.mark.parametrize(
    ("headers", "query", "expected"),
    [
        ({}, b"", ()),
        ({}, b"token=q", (IN_QUERY,)),
        ({}, b"x=1&token=q&token=other", (IN_QUERY,)),
        ({}, b"token=%71", (IN_QUERY,)),
        ({}, b"token=", ()),
        ({}, b"mytoken=q", ()),
        ({}, b"token=q&" + b"x=1&" * 2000, ()),
        ({"authorization": "token t"}, b"", (OF_TASK,)),
        ({"authorization": "Token  t "}, b"", (OF_TASK,)),
        ({"authorization": "Bearer u"}, b"", (OF_USER,)),
        ({"authorization": "bearer"}, b"", ()),
        ({"authorization": "Basic dTpw"}, b"", ()),
        ({"cookie": 'x=1; auth="s"; proxy_token=p'}, b"", (SESSION, OF_PAGE)),
        ({"cookie": "auth=; auth; AUTH=s"}, b"", ()),
        (
            {"authorization": "token t", "cookie": "proxy_token=p; auth=s"},
            b"token=q",
            (IN_QUERY, OF_TASK, SESSION, OF_PAGE),
        ),
        ({"authorization": "Bearer u", "cookie": "auth=s"}, b"", (OF_USER, SESSION)),
    ],
)
def test_what_a_request_offers(headers: dict[str, str], query: bytes, expected: tuple[Offer, ...]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    assert offers_of(raw, query) == expected


def test_cookies_may_come_in_several_headers() -> None:
    assert offers_of([(b"cookie", b"auth=s"), (b"cookie", b"proxy_token=p")], b"") == (SESSION, OF_PAGE)
