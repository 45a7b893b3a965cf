"""Paths as clients spell them, and the service that they lead to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.proxy.paths import ProxyPath, parse, task_of


@pytest.mark.parametrize(
    ("raw_path", "expected"),
    [
        (b"/proxy/1.a/", ProxyPath("1.a", "/proxy/1.a/", True)),
        (b"/proxy/1.a/b//c%2Fd", ProxyPath("1.a", "/proxy/1.a/", True)),
        (b"/proxy/1.a", ProxyPath("1.a", "/proxy/1.a/", False)),
        (b"/proxy/1.a:8080/", ProxyPath("1.a:8080", "/proxy/1.a:8080/", True)),
        (b"/proxy/1.a%3A8080/x", ProxyPath("1.a:8080", "/proxy/1.a%3A8080/", True)),
        (b"/proxy/a%2Fb/", ProxyPath("a/b", "/proxy/a%2Fb/", True)),
        (b"/proxy/%FF/", ProxyPath("\ufffd", "/proxy/%FF/", True)),
        (b"/proxy/", None),
        (b"/proxy//", None),
        (b"/proxy/%00/", None),
        (b"/proxy", None),
        (b"/other/1.a/", None),
    ],
)
def test_where_a_path_leads(raw_path: bytes, expected: ProxyPath | None) -> None:
    assert parse(raw_path) == expected


@given(st.binary(max_size=30))
def test_any_path_has_an_answer(rest: bytes) -> None:
    path = parse(b"/proxy/" + rest)
    assert path is None or (path.service_id and path.base.startswith("/proxy/") and path.base.endswith("/"))


@pytest.mark.parametrize(
    ("service_id", "expected"),
    [
        ("1.a", "1.a"),
        ("1.a:8080", "1.a"),
        ("1.a:", "1.a:"),
        ("1.a:x", "1.a:x"),
        ("a:b:1", "a:b"),
        ("1.a:\u0661", "1.a:\u0661"),
    ],
)
def test_whose_service_it_is(service_id: str, expected: str) -> None:
    assert task_of(service_id) == expected
