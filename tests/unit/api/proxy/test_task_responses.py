from __future__ import annotations

import pytest

from services.api.proxy.pages.hosts import HostRole, VisitedHost
from services.api.proxy.pages.task_responses import confined, confined_cookie

BASE = "/proxy/5/"
TASKS = VisitedHost(HostRole.TASKS, ("https://det.example.com",), "https://tasks.det.example.com")
OURS = (b"content-security-policy", b"frame-ancestors 'self' https://det.example.com")


@pytest.mark.parametrize(
    ("cookie", "expected"),
    [
        ("a=1", "a=1; Path=/proxy/5/"),
        ("a=1; Path=/; HttpOnly", "a=1; Path=/proxy/5/; HttpOnly"),
        ("a=1; path=/proxy/5/lab; Secure", "a=1; Path=/proxy/5/lab; Secure"),
        ("a=1; Path=/proxy/5/; Path=/", "a=1; Path=/proxy/5/"),
        ("a=1; Path=/proxy/55/", "a=1; Path=/proxy/5/"),
        ("a=1; Domain=example.com; Max-Age=3", "a=1; Path=/proxy/5/; Max-Age=3"),
        ("auth=1; Path=/proxy/5/", ""),
        (" AUTH = 1", ""),
        ("proxy_token=1", ""),
        ("oauth2_state=1", ""),
        ("__Host-auth=1; Path=/; Secure", ""),
    ],
)
def test_cookies_of_a_task_stay_with_it(cookie: str, expected: str) -> None:
    assert confined_cookie(cookie, base=BASE) == expected


@pytest.mark.parametrize(
    ("headers", "place", "expected"),
    [
        ([(b"x-frame-options", b"DENY")], TASKS, [OURS]),
        ([(b"clear-site-data", b"*"), (b"service-worker-allowed", b"/"), (b"x", b"1")], TASKS, [(b"x", b"1"), OURS]),
        (
            [(b"content-security-policy", b"default-src 'self'; Frame-Ancestors 'none', frame-ancestors *; img-src *")],
            TASKS,
            [(b"content-security-policy", b"default-src 'self', img-src *"), OURS],
        ),
        ([(b"content-security-policy", b"frame-ancestors 'self'")], TASKS, [OURS]),
        ([(b"x-frame-options", b"DENY")], VisitedHost(HostRole.BOTH), [(b"x-frame-options", b"DENY")]),
        ([], VisitedHost(HostRole.MAIN), [(b"content-security-policy", b"sandbox")]),
    ],
)
def test_pages_of_tasks_may_be_shown_by_the_main_address(
    headers: list[tuple[bytes, bytes]], place: VisitedHost, expected: list[tuple[bytes, bytes]]
) -> None:
    assert confined(headers, base=BASE, place=place) == expected
