from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from libs.errors import PermissionDenied
from services.api.access.forwarded import Forwarded
from services.api.access.own_pages import require_own_page, require_own_websocket

HOST = {"host": "det.example:8080"}


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("HEAD", {"origin": "https://evil.example"}),
        ("POST", {"origin": "http://det.example:8080"}),
        ("POST", {"origin": "http://DET.example:8080", "sec-fetch-site": "same-origin"}),
        ("POST", {"origin": "https://det.example", "x-forwarded-host": "det.example"}),
        ("POST", {"origin": "https://det.example", "x-forwarded-host": "det.example:443, inner"}),
        ("POST", {"origin": "https://det.example:8443", "x-forwarded-host": "det.example", "x-forwarded-port": "8443"}),
        ("POST", {"origin": "https://[2001:db8::1]:8443", "host": "[2001:db8::1]", "x-forwarded-port": "8443"}),
        ("POST", {"origin": "http://det.example", "host": "det.example:80"}),
        ("DELETE", {"sec-fetch-site": "same-origin"}),
    ],
)
def test_pages_of_the_same_address_may_change_something(method: str, headers: dict[str, str]) -> None:
    require_own_page(method, {**HOST, **headers})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://tasks.det.example:8080", "sec-fetch-site": "same-site"},
        {"origin": "http://det.example"},
        {"origin": "http://[", "sec-fetch-site": "cross-site"},
        {"origin": "null", "host": ""},
        {"origin": "http://det.example:8080", "host": "det.example:port"},
        {"origin": "https://det.example:9", "x-forwarded-host": "det.example", "x-forwarded-port": "8443"},
        {"sec-fetch-site": "none"},
    ],
)
def test_no_others_may(headers: dict[str, str]) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(PermissionDenied, match="Origin"):
            require_own_page(method, {**HOST, **headers})


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": "http://det.example:8080"}, {"origin": "https://det.example", "sec-fetch-site": "same-origin"}],
)
def test_programs_and_own_pages_may_open_websockets(headers: dict[str, str]) -> None:
    require_own_websocket("do that", {**HOST, **headers})


@pytest.mark.parametrize(
    ("forwarded", "advice"),
    [
        (None, "http://det.example, and the request came to det.example:8080. A proxy in between has to pass Host on"),
        (Forwarded("10.0.0.9"), "http.trusted_proxies"),
        (
            Forwarded("10.0.0.9", "det.example"),
            "X-Forwarded-Host (det.example) counts for nothing, since http.trusted_p",
        ),
    ],
)
def test_a_refused_page_is_told_why_and_so_is_the_log(forwarded: Forwarded | None, advice: str) -> None:
    with capture_logs() as lines, pytest.raises(PermissionDenied) as refused:
        require_own_websocket("do that", {**HOST, "origin": "http://det.example"}, forwarded)
    assert advice in str(refused.value)
    (line,) = lines
    peer = forwarded.peer if forwarded else ""
    assert (line["event"], line["reason"], line["peer"]) == ("http.page_refused", str(refused.value), peer)
