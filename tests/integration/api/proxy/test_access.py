"""Who gets through the proxy, and what everybody else is told."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import Table, func, select, update

from libs.db.engine import Connection
from libs.db.outbox import announce
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.tasks import allocations, tasks
from libs.events.changes import AllocationChanged
from libs.ids import UserId
from libs.tasks.proxy_tokens import ProxyTokens, TokenHolder
from services.api.proxy.services import REMEMBER_S
from tests.harness.waiting import eventually
from tests.integration.api.proxy.servers import http_server
from tests.integration.api.proxy.tasks import HERE, NOWHERE, insert_service, insert_trial_with_ports, running
from tests.integration.api.world import World

PAGE = {"Accept": "text/html,*/*"}
USER = 2


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_whoever_is_not_logged_in_is_told_so(world: World, stranger: httpx.AsyncClient, port: int) -> None:
    task = insert_service(world, port)
    for headers in ({}, {"Authorization": "Basic dTpw"}, PAGE, {"Cookie": "other=1"}):
        answer = await stranger.get(f"/proxy/{task}/", headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})


async def test_whose_login_is_over_is_led_to_the_login(world: World, stranger: httpx.AsyncClient, port: int) -> None:
    task = insert_service(world, port)
    for headers in (bearer("gone"), {"Cookie": "auth=gone"}, {"Authorization": "token gone"}):
        answer = await stranger.get(f"/proxy/{task}/lab?x=1&y=2", headers={**headers, **PAGE})
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/det/login?redirect={quote(f'/proxy/{task}/lab?x=1&y=2', safe='')}"
        answer = await stranger.get(f"/proxy/{task}/lab", headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"message": "invalid credentials"})


async def test_a_login_opens_every_task(world: World, stranger: httpx.AsyncClient, port: int, token: str) -> None:
    task = insert_service(world, port)
    for headers in (
        bearer(token),
        {"Cookie": f"auth={token}"},
        {"Authorization": "Basic x", "Cookie": f"auth={token}"},
    ):
        assert (await stranger.get(f"/proxy/{task}/", headers=headers)).status_code == 200


async def test_a_proxy_token_opens_its_task_and_the_rest_of_its_pages(
    world: World, stranger: httpx.AsyncClient, port: int, tokens: ProxyTokens
) -> None:
    task, other = insert_service(world, port), insert_service(world, port)
    token = tokens.issue(TokenHolder(UserId(USER), task))
    answer = await stranger.get(f"/proxy/{task}/lab?token={token}")
    assert answer.status_code == 200
    assert answer.json()["target"] == f"/proxy/{task}/lab?token={token}"  # Jupyter asks for it as well
    cookie = answer.headers["set-cookie"]
    assert cookie == f"proxy_token={token}; Path=/proxy/{task}/; HttpOnly; SameSite=Lax"
    inside = await stranger.get(f"/proxy/{task}/static/main.js")  # with the cookie
    assert (inside.status_code, "set-cookie" in inside.headers) == (200, False)
    stranger.cookies.clear()
    of_header = await stranger.get(f"/proxy/{task}/", headers={"Authorization": f"token {token}"})
    assert of_header.status_code == 200
    assert ["authorization", f"token {token}"] in of_header.json()["headers"]
    refusal = await stranger.get(f"/proxy/{other}/?token={token}")
    assert (refusal.status_code, refusal.json()) == (403, {"message": "the token is for another task"})


async def test_the_server_in_a_task_has_a_token_that_opens_nothing_else(
    world: World, stranger: httpx.AsyncClient, port: int, tokens: ProxyTokens
) -> None:
    task = insert_service(world, port, server_token="of-the-server")
    token = tokens.issue(TokenHolder(UserId(USER), task))
    seen = (await stranger.get(f"/proxy/{task}/lab?a=%2F&token={token}&b")).json()
    assert seen["target"] == f"/proxy/{task}/lab?a=%2F&token=of-the-server&b"
    stranger.cookies.clear()
    seen = (await stranger.get(f"/proxy/{task}/lab", headers={"Authorization": f"token {token}"})).json()
    assert ["authorization", "token of-the-server"] in seen["headers"]
    assert token not in str(seen)
    assert (await stranger.get(f"/proxy/{task}/lab?token=of-the-server")).status_code == 401


async def test_a_token_of_the_tasks_own_does_no_harm(
    world: World, stranger: httpx.AsyncClient, port: int, token: str
) -> None:
    task = insert_service(world, port)
    answer = await stranger.get(f"/proxy/{task}/?token=mine", headers={"Cookie": f"auth={token}"})
    assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
    assert (await stranger.get(f"/proxy/{task}/?token=mine")).status_code == 401


async def test_a_task_may_ask_nobody(world: World, stranger: httpx.AsyncClient, port: int) -> None:
    task = insert_service(world, port, unauthenticated=True)
    assert (await stranger.get(f"/proxy/{task}/")).status_code == 200


async def test_what_is_not_there_is_not_found(world: World, stranger: httpx.AsyncClient, port: int, token: str) -> None:
    task = insert_service(world, port)
    for service in (f"{task}:{port}", f"{task}x", "nothing", "a%00b", "%2e%2e", "%F0%28%8C%28"):
        answer = await stranger.get(f"/proxy/{service}/", headers=bearer(token))
        assert answer.status_code == 404, service
    answer = await stranger.get(f"/proxy/{task}:1/", headers=bearer(token))
    assert answer.json() == {"message": f"service not found: {task}:1"}


async def test_the_slash_behind_a_service_is_added(world: World, stranger: httpx.AsyncClient, port: int) -> None:
    task = insert_service(world, port)
    answer = await stranger.get(f"/proxy/{task}?token=x")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/proxy/{task}/?token=x")


async def test_a_task_that_starts_has_a_page_that_asks_again(
    world: World, stranger: httpx.AsyncClient, token: str
) -> None:
    task = insert_service(world, 1, allocation=NOWHERE)
    page = await stranger.get(f"/proxy/{task}/", headers={**bearer(token), **PAGE})
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html; charset=utf-8")
    assert 'http-equiv="refresh"' in page.text
    answer = await stranger.get(f"/proxy/{task}/", headers=bearer(token))
    assert (answer.status_code, answer.json()) == (502, {"message": f"task {task} has not started yet"})


@pytest.mark.parametrize(
    "allocation",
    [
        pytest.param(running(HERE, seen=("10.1.2.3",)), id="an address of somebody else"),
        pytest.param(running("localhost", seen=("127.0.0.1",)), id="a name that leads here"),
        pytest.param(running(HERE, seen=()), id="before its pod was seen"),
    ],
)
async def test_a_task_cannot_make_the_api_connect_elsewhere(
    world: World, stranger: httpx.AsyncClient, port: int, token: str, allocation: dict[str, object]
) -> None:
    task = insert_service(world, port, allocation=allocation)
    assert (await stranger.get(f"/proxy/{task}/", headers=bearer(token))).status_code == 502


async def test_several_trials_have_the_same_ports(world: World, stranger: httpx.AsyncClient, token: str) -> None:
    async with http_server() as one, http_server() as other:
        first = insert_trial_with_ports(world, [{"proxy_port": one}, {"proxy_port": other, "default_service_id": True}])
        second = insert_trial_with_ports(world, [{"proxy_port": one, "unauthenticated": True}])
        for service in (f"{first}:{one}", first, f"{second}:{one}", f"{second}%3A{one}"):
            answer = await stranger.get(f"/proxy/{service}/", headers=bearer(token))
            assert answer.status_code == 200, service
        assert (await stranger.get(f"/proxy/{second}:{one}/")).status_code == 200
        assert (await stranger.get(f"/proxy/{first}:{other}/", headers=bearer(token))).status_code == 404


async def test_a_service_ends_with_its_task_and_moves_with_its_allocation(
    world: World, stranger: httpx.AsyncClient, token: str, port: int
) -> None:
    task = insert_service(world, port)

    def change(table: Table, **values: Any) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(update(table).where(table.c.task_id == task).values(values))
            await announce(connection, AllocationChanged(allocation_id=f"{task}.1", task_id=task, what="state"))

        world.in_database(work)

    async def becomes(status: int) -> None:
        async def look() -> bool:
            return (await stranger.get(f"/proxy/{task}/", headers=bearer(token))).status_code == status

        await eventually(look, timeout_s=REMEMBER_S / 2, what=f"{status}, as the bus has told that something is new")

    await becomes(200)
    change(allocations, state="TERMINATED")
    await becomes(502)
    change(tasks, end_time=func.now())
    await becomes(404)


async def test_use_is_noted(world: World, stranger: httpx.AsyncClient, token: str, port: int) -> None:
    task = insert_service(world, port)
    query = select(interactive_tasks.c.last_active_at).where(interactive_tasks.c.task_id == task)
    await stranger.get(f"/proxy/{task}/", headers=bearer(token))
    await eventually(lambda: world.in_database(lambda connection: connection.scalar(query)), every_s=0.2)


async def test_a_header_bomb_is_refused(world: World, stranger: httpx.AsyncClient, port: int) -> None:
    task = insert_service(world, port, unauthenticated=True)
    assert (await stranger.get(f"/proxy/{task}/", headers={"X-Bomb": "x" * 200_000})).status_code == 431
    many = [("X-Many", "x")] * 500
    assert (await stranger.get(f"/proxy/{task}/", headers=many)).status_code == 431
