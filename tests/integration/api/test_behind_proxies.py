"""Proxies in front of the api: those that the settings name are believed, and nobody else is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.harness.api import ApiProcess
from tests.integration.api.proxy.servers import http_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import CLUSTER, World

PAGE = "https://det.example:8443"
SAID = {
    "X-Forwarded-Host": "det.example",
    "X-Forwarded-Port": "8443",
    "X-Forwarded-Proto": "https",
    "X-Real-IP": "9.9.9.9",
}
"""By a proxy that does not pass Host on."""
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def replica(world: World, name: str, **http: Any) -> ApiProcess:
    path = world.directory / f"{name}.yaml"
    path.write_text(
        f"{CLUSTER}feature_switches: [streaming_updates]\n"
        "scim: {enabled: true, auth: {type: basic, username: okta, password: very-secret-too}}\n"
    )
    settings = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1, **http}
    return world.api(name, cluster_config=str(path), http=settings)


@pytest.fixture(scope="module")
def trusting(world: World) -> Iterator[ApiProcess]:
    with replica(world, "trusting", trusted_proxies=["127.0.0.0/8"]) as api:
        yield api


@pytest.fixture(scope="module")
def wary(world: World) -> Iterator[ApiProcess]:
    """Trusts another proxy."""
    with replica(world, "wary", trusted_proxies=["10.0.0.0/8"]) as api:
        yield api


def shake(api: ApiProcess, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Status and reason of the answer to a page that opens a websocket with the cookie of its user."""
    cookie = {"Cookie": f"auth={api.token('determined')}", "Origin": PAGE}
    with httpx.stream("GET", f"{api.url}{path}", headers={**HANDSHAKE, **cookie, **headers}, timeout=30) as answer:
        if answer.status_code == 101:
            return 101, ""
        answer.read()
        return answer.status_code, answer.json()["message"]


def logged(api: ApiProcess, event: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in api.process.log().splitlines() if f'"{event}"' in line]


def test_updates_reach_a_page_behind_a_proxy_that_is_named(trusting: ApiProcess, wary: ApiProcess) -> None:
    assert shake(trusting, "/stream", SAID) == (101, "")
    status, why = shake(wary, "/stream", SAID)
    assert status == 403
    assert all(part in why for part in (PAGE, "127.0.0.1", "X-Forwarded-Host (det.example)", "http.trusted_proxies"))
    assert (logged(wary, "http.page_refused")[-1]["reason"], logged(wary, "http.page_refused")[-1]["peer"]) == (
        why,
        "127.0.0.1",
    )
    (line,) = logged(wary, "http.forwarded_ignored")
    assert line["peer"] == "127.0.0.1"


def test_a_proxy_that_says_nothing_of_the_host_is_named_as_the_likely_reason(trusting: ApiProcess) -> None:
    status, why = shake(trusting, "/stream", {})
    assert (status, "has to pass Host on, or say X-Forwarded-Host" in why) == (403, True)
    assert shake(trusting, "/stream", {"Sec-Fetch-Site": "same-origin"}) == (101, ""), "the browser knows better"


def test_a_page_changes_something_through_a_named_proxy_only(trusting: ApiProcess, wary: ApiProcess) -> None:
    for api, status in ((trusting, 200), (wary, 403)):
        headers = {"Cookie": f"auth={api.token('determined')}", "Origin": PAGE, **SAID}
        answer = httpx.post(f"{api.url}/api/v1/auth/logout", headers=headers, timeout=30)
        assert answer.status_code == status, answer.text
    assert "http.trusted_proxies" in answer.json()["error"]["error"]


async def test_tasks_are_told_what_named_proxies_say_and_nothing_else(
    world: World, trusting: ApiProcess, wary: ApiProcess
) -> None:
    async with http_server() as port:
        task = insert_service(world, port)
        told = {}
        for api in (trusting, wary):
            headers = {"Authorization": f"Bearer {api.token('determined')}", **SAID}
            async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=30) as client:
                told[api] = dict((await client.get(f"/proxy/{task}/")).json()["headers"])
        path = f"/proxy/{task}/websocket"
        sockets = [(await asyncio.to_thread(shake, api, path, SAID))[0] for api in (trusting, wary)]
    assert {name: told[trusting][name] for name in map(str.lower, SAID)} == {
        name.lower(): value for name, value in SAID.items()
    }
    assert "x-forwarded-host" not in told[wary]
    assert "x-forwarded-port" not in told[wary]
    assert (told[wary]["x-real-ip"], told[wary]["x-forwarded-proto"]) == ("127.0.0.1", "http")
    assert sockets == [101, 403]


def test_cookies_are_for_https_where_a_named_proxy_says_so(trusting: ApiProcess, wary: ApiProcess) -> None:
    for api, secure in ((trusting, True), (wary, False)):
        answer = httpx.post(f"{api.url}/api/v1/auth/login", json={"username": "determined"}, headers=SAID, timeout=30)
        assert ("Secure" in answer.headers["set-cookie"]) is secure


def test_scim_names_addresses_as_the_provider_knows_them(trusting: ApiProcess, wary: ApiProcess) -> None:
    for api, begin in ((trusting, PAGE), (wary, wary.url)):
        scim = f"{api.url}/scim/v2/ResourceTypes"
        answer = httpx.get(scim, auth=("okta", "very-secret-too"), headers=SAID, timeout=30)
        assert f'"{begin}/scim/v2' in answer.text
