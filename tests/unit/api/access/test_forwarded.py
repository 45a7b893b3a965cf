"""Whom the api believes about where a request came from and went to."""

from __future__ import annotations

import pytest
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from services.api.access.forwarded import BehindProxies, Forwarded, forwarded_of, visited_hosts

PROXY = "10.0.0.9"
SAID = {
    "x-forwarded-for": "9.9.9.9",
    "x-forwarded-host": "det.example",
    "x-forwarded-proto": "https",
    "x-forwarded-port": "443",
    "x-forwarded-user": "somebody",
    "x-real-ip": "9.9.9.9",
    "forwarded": "for=9.9.9.9;host=det.example",
}
OWN = {"host": "inner:8080", "accept": "*/*"}


async def nothing() -> Message:
    raise AssertionError("nobody asks")


async def nowhere(_: Message) -> None:
    raise AssertionError("nobody answers")


async def behind(trusted: tuple[str, ...], *peers: str, headers: dict[str, str]) -> Scope:
    """What the application sees of a request of the last peer, after those of the others."""
    seen: list[Scope] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    rim = BehindProxies(application, trusted)
    for peer in peers:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope: Scope = {"type": "http", "scheme": "http", "client": (peer, 4711), "headers": raw}
        await rim(scope, nothing, nowhere)
    return seen[-1]


def headers_of(scope: Scope) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in scope["headers"]}


@pytest.mark.parametrize("trusted", [(PROXY,), ("10.0.0.0/24",), ("*",)])
async def test_what_a_named_proxy_says_counts(trusted: tuple[str, ...]) -> None:
    scope = await behind(trusted, PROXY, headers={**OWN, **SAID})
    assert headers_of(scope) == {**OWN, **SAID}
    assert (scope["client"][0], scope["scheme"]) == ("9.9.9.9", "https")
    assert forwarded_of(scope) == Forwarded(PROXY)


@pytest.mark.parametrize("trusted", [(), ("10.0.1.0/24", "10.0.0.8")])
async def test_what_anybody_else_says_is_taken_out(trusted: tuple[str, ...]) -> None:
    with capture_logs() as lines:
        scope = await behind(trusted, PROXY, PROXY, headers={**OWN, **SAID})
    assert headers_of(scope) == {**OWN, "x-forwarded-for": "9.9.9.9"}
    assert (scope["client"][0], scope["scheme"]) == (PROXY, "http")
    assert forwarded_of(scope) == Forwarded(PROXY, "det.example")
    (line,) = lines
    assert (line["event"], line["peer"], line["setting"]) == ("http.forwarded_ignored", PROXY, "http.trusted_proxies")


async def test_strangers_cannot_fill_the_log() -> None:
    with capture_logs() as lines:
        await behind((), *(f"10.1.0.{number}" for number in range(100)), headers=SAID)
    assert len(lines) == 32


async def test_a_request_of_which_nobody_says_anything_is_left_alone() -> None:
    scope = await behind((), PROXY, headers=OWN)
    assert (headers_of(scope), forwarded_of(scope)) == (OWN, None)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, []),
        ({"host": "Inner:8080"}, ["inner:8080"]),
        ({"host": "inner", "x-forwarded-host": "Det.example, other"}, ["det.example", "inner"]),
        ({"host": "det.example", "x-forwarded-port": "8443"}, ["det.example:8443", "det.example"]),
        ({"host": "[2001:db8::1]", "x-forwarded-port": "8443"}, ["[2001:db8::1]:8443", "[2001:db8::1]"]),
        ({"host": "det.example:1", "x-forwarded-port": "2"}, ["det.example:1"]),
        ({"host": "det.example", "x-forwarded-port": "443"}, ["det.example"]),
        ({"host": "det.example", "x-forwarded-port": "x"}, ["det.example"]),
    ],
)
def test_names_under_which_a_client_knows_the_server(headers: dict[str, str], expected: list[str]) -> None:
    assert visited_hosts(headers) == expected


@pytest.mark.parametrize("trusted", [("10.1.2.3/8",), ("192.0.2.1", f"{PROXY}/24"), ("192.0.2.0/24", "*")])
async def test_proxies_are_networks_or_everybody(trusted: tuple[str, ...]) -> None:
    scope = await behind(trusted, PROXY, headers={**OWN, **SAID})
    assert scope["scheme"] == "https"


@pytest.mark.parametrize("proxy", ["ingress.example", ""])
async def test_a_proxy_that_is_no_address_counts_for_nothing_and_is_named(proxy: str) -> None:
    with capture_logs() as lines:
        scope = await behind((proxy,), PROXY, headers={**OWN, **SAID})
    assert scope["scheme"] == "http"
    assert [line["event"] for line in lines] == ["http.proxy_ignored", "http.forwarded_ignored"]
