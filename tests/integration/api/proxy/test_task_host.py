"""Pages of tasks under a host name of their own: how browsers get there, and what is served where."""

from __future__ import annotations

from collections.abc import Iterator
from http.cookies import SimpleCookie
from urllib.parse import quote, urlsplit

import httpx
import pytest
from aiohttp import ClientSession

from libs.ids import UserId
from libs.tasks.proxy_tokens import PageHolder, ProxyTokens, TokenHolder
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import CLUSTER, World

MAIN, TASKS = "det.example.com", "tasks.det.example.com"
NAVIGATION = {"User-Agent": "Mozilla/5.0", "Accept": "text/html,*/*", "Sec-Fetch-Mode": "navigate"}
SCRIPT = {"User-Agent": "Mozilla/5.0", "Accept": "*/*", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
USER = 2


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "task-host.yaml"
    path.write_text(f"{CLUSTER}tasks: {{address: 'https://{TASKS}', main_address: 'https://{MAIN}'}}\n")
    http = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1, "trusted_proxies": ["127.0.0.1"]}
    with world.api("task-host", cluster_config=str(path), http=http) as api:
        yield api


def at(host: str, *more: dict[str, str]) -> dict[str, str]:
    headers = {"Host": host, "X-Forwarded-Proto": "https"}
    for each in more:
        headers |= each
    return headers


def cookie(value: str, name: str = "auth") -> dict[str, str]:
    return {"Cookie": f"{name}={value}"}


async def sent_to_tasks(stranger: httpx.AsyncClient, path: str, *headers: dict[str, str]) -> str:
    """Path and query that a browser is sent to."""
    answer = await stranger.get(path, headers=at(MAIN, NAVIGATION, *headers))
    assert answer.status_code == 303, answer.text
    parts = urlsplit(answer.headers["location"])
    assert f"{parts.scheme}://{parts.netloc}" == f"https://{TASKS}"
    return f"{parts.path}?{parts.query}"


async def cookie_of_page(stranger: httpx.AsyncClient, ticket: str) -> SimpleCookie:
    answer = await stranger.get(ticket, headers=at(TASKS, NAVIGATION))
    assert answer.status_code == 303
    return SimpleCookie(answer.headers.get("set-cookie", ""))


async def test_a_browser_gets_a_cookie_for_this_task_and_this_login(
    world: World, api: ApiProcess, stranger: httpx.AsyncClient, port: int
) -> None:
    task, other = insert_service(world, port), insert_service(world, port)
    login = api.token("determined")
    ticket = await sent_to_tasks(stranger, f"/proxy/{task}/lab?x=1", cookie(login))
    assert login not in ticket
    answer = await stranger.get(ticket, headers=at(TASKS, NAVIGATION))
    assert (answer.status_code, answer.headers["location"]) == (303, f"/proxy/{task}/lab?x=1")
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    given = SimpleCookie(answer.headers["set-cookie"])["proxy_token"]
    assert (given["path"], given["httponly"], given["secure"], given["samesite"]) == (
        f"/proxy/{task}/",
        True,
        True,
        "Lax",
    )
    of_page = cookie(given.value, "proxy_token")
    page = await stranger.get(f"/proxy/{task}/lab?x=1", headers=at(TASKS, NAVIGATION, of_page))
    assert page.json()["target"] == f"/proxy/{task}/lab?x=1"
    assert given.value not in page.text, "the task does not see it"
    assert page.headers["content-security-policy"] == f"frame-ancestors 'self' https://{MAIN}"
    assert "x-frame-options" not in page.headers
    for refused in (
        await stranger.get(f"/proxy/{other}/", headers=at(TASKS, SCRIPT, of_page)),
        await stranger.get(f"/proxy/{task}/", headers=at(TASKS, SCRIPT, cookie(login))),
    ):
        assert refused.status_code == 401
    assert not await cookie_of_page(stranger, ticket.replace(task, other)), "a ticket is for one task"
    headers = at(TASKS, of_page)
    async with ClientSession(base_url=api.url) as session:
        origin = {"Origin": f"https://{TASKS}"}
        async with session.ws_connect(f"/proxy/{task}/websocket", headers={**headers, **origin}) as socket:
            assert (await socket.receive_json(timeout=30))["target"] == f"/proxy/{task}/websocket"
    out = await stranger.post("/api/v1/auth/logout", headers=at(MAIN, {"Authorization": f"Bearer {login}"}))
    assert out.status_code == 200
    assert (await stranger.get(f"/proxy/{task}/", headers=at(TASKS, SCRIPT, of_page))).status_code == 401
    led_back = await stranger.get(f"/proxy/{task}/lab?x=1", headers=at(TASKS, NAVIGATION, of_page))
    here = quote(f"/proxy/{task}/lab?x=1", safe="")
    assert led_back.headers["location"] == f"https://{MAIN}/det/login?relayState={here}"


async def test_a_ticket_does_not_last(
    world: World, stranger: httpx.AsyncClient, port: int, tokens: ProxyTokens
) -> None:
    task = insert_service(world, port)
    for holder in (PageHolder(1, task, 1), PageHolder(1, task, 0)):
        ticket = tokens.issue_page(holder)
        assert not await cookie_of_page(stranger, f"/proxy/{task}/?resolute_ticket={ticket}")
    unused = tokens.issue_page(PageHolder(1, task, 2**40))
    as_cookie = at(TASKS, SCRIPT, cookie(unused, "proxy_token"))
    assert (await stranger.get(f"/proxy/{task}/", headers=as_cookie)).status_code == 401


async def test_on_the_main_address_programs_are_served_and_browsers_are_not(
    world: World, api: ApiProcess, stranger: httpx.AsyncClient, port: int, tokens: ProxyTokens
) -> None:
    task = insert_service(world, port)
    public = insert_service(world, port, unauthenticated=True)
    login, link = api.token("determined"), tokens.issue(TokenHolder(UserId(USER), task))
    for path, headers in (
        (f"/proxy/{task}/", {"Authorization": f"Bearer {login}"}),
        (f"/proxy/{task}/", {**SCRIPT, "Authorization": f"Bearer {login}"}),
        (f"/proxy/{task}/", {"Authorization": f"token {link}"}),
        (f"/proxy/{task}/?token={link}", {}),
        (f"/proxy/{public}/", {}),
    ):
        answer = await stranger.get(path, headers=at(MAIN, headers))
        assert answer.status_code == 200, (path, headers)
        assert answer.headers["content-security-policy"] == "sandbox", "and no page is made of it"
    for path, more in (
        (f"/proxy/{task}/", cookie(login)),
        (f"/proxy/{task}/?token={link}", {}),
        (f"/proxy/{public}/", {}),
    ):
        refused = await stranger.get(path, headers=at(MAIN, SCRIPT, more))
        assert refused.status_code == 403
        assert f"https://{TASKS}" in refused.json()["message"]
        assert (await stranger.post(path, headers=at(MAIN, NAVIGATION, more))).status_code == 403
    assert await sent_to_tasks(stranger, f"/proxy/{task}/?token={link}") == f"/proxy/{task}/?token={link}"
    before_the_upgrade = cookie(link, "proxy_token")
    assert await sent_to_tasks(stranger, f"/proxy/{task}/", before_the_upgrade) == f"/proxy/{task}/?token={link}"
    assert await sent_to_tasks(stranger, f"/proxy/{public}/") == f"/proxy/{public}/?"


async def test_the_api_is_not_served_where_pages_of_tasks_are(api: ApiProcess, stranger: httpx.AsyncClient) -> None:
    known = {"Authorization": f"Bearer {api.token('determined')}"}
    for path in ("/api/v1/me", "/info", "/det/login", "/", "/health", "/docs"):
        for headers in ({"Host": TASKS}, {"Host": MAIN, "X-Forwarded-Host": TASKS}, {"Host": "Tasks.localhost:8080"}):
            answer = await stranger.get(path, headers={**headers, **known})
            assert answer.status_code in (404, 501), (path, headers)
    assert (await stranger.get("/info", headers={"Host": MAIN})).status_code == 200


async def test_one_host_name_goes_on_as_before(world: World, port: int) -> None:
    task = insert_service(world, port)
    with world.api("one-host") as api:
        async with httpx.AsyncClient(base_url=api.url, timeout=30, verify=NO_TLS) as stranger:
            headers = {"Host": "10.0.0.7:8080", **NAVIGATION, **cookie(api.token("determined"))}
            answer = await stranger.get(f"/proxy/{task}/", headers=headers)
            assert (answer.status_code, "content-security-policy" in answer.headers) == (200, False)
