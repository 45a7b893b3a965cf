"""Who is let in, and for how long."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import insert, update

from libs.clock import SystemClock
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, connect_database
from libs.db.outbox import announce
from libs.db.tables.users import allocation_sessions, user_sessions, users
from libs.errors import Unauthenticated
from libs.events.changes import AllocationChanged
from libs.tokens import digest, new_token
from services.api.access.credentials import Credentials, TokenKind
from services.api.access.login_throttle import FIRST_WAIT_S, FREE_BY_ADDRESS, FREE_BY_NAME_AND_ADDRESS
from services.api.access.sessions import Sessions
from tests.builders import insert_allocation, insert_allocation_session, insert_task, insert_user_session
from tests.harness import FakeClock, eventually
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.harness.waiting import wait_until
from tests.integration.api.world import World


@pytest.fixture(scope="module")
def replica(world: World) -> Iterator[ApiProcess]:
    """Another api on the same database and bus."""
    with world.api("second") as second:
        yield second


def status(api: ApiProcess, token: str, *, header: str = "Authorization", path: str = "/api/v1/me") -> tuple[int, str]:
    reply = httpx.get(f"{api.url}{path}", headers={header: f"Bearer {token}"}, timeout=30, verify=NO_TLS)
    error = reply.json().get("error", {})
    return reply.status_code, error.get("error", "") if isinstance(error, dict) else ""


def created(admin: httpx.Client, username: str, **fields: Any) -> int:
    body = {"user": {"username": username, "active": True, **fields}, "password": "a", "isHashed": False}
    reply = admin.post("/api/v1/users", json=body)
    assert reply.status_code == 200, reply.text
    ident: int = reply.json()["user"]["id"]
    return ident


def alter_session(world: World, token: str, **values: Any) -> None:
    async def work(connection: Connection) -> None:
        mine = user_sessions.c.token_hash == digest(token)
        await connection.execute(update(user_sessions).where(mine).values(**values))

    world.in_database(work)


def hear_of_soon(do: Callable[[], Callable[[], bool]]) -> None:
    """Fails when what ``do`` does is not heard of, but found out once a session is no longer remembered, after 10 s.

    do  returns how to ask whether it is known; done again in case the machine stood still
    """
    times = []
    for _ in range(3):
        is_known = do()
        began = time.monotonic()
        wait_until(is_known, what="it is known")
        times.append(time.monotonic() - began)
        if times[-1] < 8:
            return
    raise AssertionError(f"it took {times} s")


def test_nobody_is_told_apart_from_garbage(api: ApiProcess) -> None:
    assert httpx.get(f"{api.url}/api/v1/me", timeout=30, verify=NO_TLS).json()["error"]["error"] == "token missing"
    assert status(api, "garbage") == (401, "invalid credentials")


@pytest.mark.parametrize("username", ["admin", "nobody"])
def test_a_wrong_password_says_nothing_about_the_user(api: ApiProcess, username: str) -> None:
    body = {"username": username, "password": "wrong"}
    reply = httpx.post(f"{api.url}/api/v1/auth/login", json=body, timeout=30, verify=NO_TLS)
    assert (reply.status_code, reply.json()["error"]["error"]) == (401, "invalid credentials")


def test_a_name_is_required(api: ApiProcess) -> None:
    reply = httpx.post(f"{api.url}/api/v1/auth/login", timeout=30, verify=NO_TLS)
    assert (reply.status_code, reply.json()["error"]["error"]) == (400, "missing argument: username")


def test_the_cookie_of_a_login_is_as_good_as_its_token(api: ApiProcess) -> None:
    with httpx.Client(base_url=api.url, timeout=30, verify=NO_TLS) as browser:
        browser.post("/api/v1/auth/login", json={"username": "admin"})
        assert browser.get("/api/v1/me").json()["user"]["username"] == "admin"
        for page in ({}, {"Origin": "https://evil.example"}, {"Origin": "null", "Sec-Fetch-Site": "same-site"}):
            refused = browser.post("/api/v1/auth/logout", headers=page)
            assert refused.status_code == 403
            assert "Origin" in refused.json()["error"]["error"]
        browser.post("/api/v1/auth/logout", headers={"Origin": api.url}).raise_for_status()
        assert "auth" not in browser.cookies
        assert browser.get("/api/v1/me").status_code == 401


def test_over_https_no_other_host_can_set_the_cookie(world: World) -> None:
    by_https = {"X-Forwarded-Proto": "https"}
    http = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1, "trusted_proxies": ["127.0.0.1"]}
    with (
        world.api("behind-https", http=http) as api,
        httpx.Client(base_url=api.url, timeout=30, verify=NO_TLS, headers=by_https) as browser,
    ):
        given = browser.post("/api/v1/auth/login", json={"username": "admin"}).headers["set-cookie"]
        name, _, token = given.partition(";")[0].partition("=")
        attributes = {each.strip() for each in given.split(";")[1:]}
        assert (name, {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"} <= attributes) == ("__Host-auth", True)
        both = {"Cookie": f"auth={api.token('determined')}; {name}={token}"}
        assert browser.get("/api/v1/me", headers=both).json()["user"]["username"] == "admin"
        out = browser.post("/api/v1/auth/logout", headers={**both, "Origin": api.url})
        assert out.headers["set-cookie"].startswith("__Host-auth=; Path=/; Expires=")
        assert "Secure" in out.headers["set-cookie"]


def test_logging_out_ends_the_session_everywhere(api: ApiProcess, replica: ApiProcess) -> None:
    def log_out() -> Callable[[], bool]:
        token = api.token()
        assert status(replica, token)[0] == 200, "and from now on it is remembered there"
        httpx.post(
            f"{api.url}/api/v1/auth/logout", headers={"Authorization": f"Bearer {token}"}, timeout=30, verify=NO_TLS
        )
        assert status(api, token) == (401, "invalid credentials")
        return lambda: status(replica, token)[0] == 401

    hear_of_soon(log_out)


def test_deactivation_is_heard_everywhere(api: ApiProcess, replica: ApiProcess, admin: httpx.Client) -> None:
    def deactivate() -> Callable[[], bool]:
        name = f"leaver-{uuid4().hex[:8]}"
        ident = created(admin, name)
        token = api.token(name, "a")
        assert status(replica, token)[0] == 200
        admin.patch(f"/api/v1/users/{ident}", json={"active": False})
        assert status(api, token) == (403, "user does not have permission")
        return lambda: status(replica, token)[0] == 403

    hear_of_soon(deactivate)


def test_sessions_expire(api: ApiProcess, world: World) -> None:
    token = api.token()
    alter_session(world, token, expires_at=SystemClock().now() - timedelta(seconds=1))
    assert status(api, token) == (401, "invalid credentials")


def test_remote_users_are_sent_to_their_provider(api: ApiProcess, admin: httpx.Client, world: World) -> None:
    ident = created(admin, "remote")
    token = api.token("remote", "a")
    alter_session(world, token, expires_at=SystemClock().now() - timedelta(seconds=1))

    async def work(connection: Connection) -> None:
        await connection.execute(update(users).where(users.c.id == ident).values(remote=True))

    world.in_database(work)
    assert status(api, token) == (401, "remote user token expired")
    reply = httpx.post(
        f"{api.url}/api/v1/auth/login", json={"username": "remote", "password": "a"}, timeout=30, verify=NO_TLS
    )
    assert reply.status_code == 401


def test_the_token_of_a_user_that_a_task_has_is_not_logged_out(api: ApiProcess, world: World) -> None:
    async def insert_of_task(connection: Connection) -> str:
        ident = await insert_task(connection, owner_id=2)
        allocation = await insert_allocation(connection, task_id=ident)
        return await insert_user_session(connection, token_type="TASK", user_id=2, allocation_id=allocation)

    token: str = world.in_database(insert_of_task)
    header = {"Authorization": f"Bearer {token}"}
    logout = httpx.post(f"{api.url}/api/v1/auth/logout", headers=header, timeout=30, verify=NO_TLS)
    assert logout.status_code == 400
    assert logout.json()["error"]["error"] == "cannot manually logout of an allocation session"
    assert status(api, token) == (200, "")


def test_tasks_act_for_their_owner_until_they_end(api: ApiProcess, world: World) -> None:
    header = "Grpc-Metadata-x-allocation-token"

    def minted(allocation: str) -> str:
        token: str = world.in_database(
            lambda connection: insert_allocation_session(connection, allocation_id=allocation, owner_id=2)
        )
        return token

    token = minted("7.a-b.1")
    assert status(api, token, header=header) == (200, "")
    assert status(api, token)[0] == 401, "it is worth nothing as the token of a user"
    logout = httpx.post(f"{api.url}/api/v1/auth/logout", headers={header: f"Bearer {token}"}, timeout=30, verify=NO_TLS)
    assert logout.json()["error"]["error"] == "cannot manually logout of an allocation session"

    def end() -> Callable[[], bool]:
        task = f"7.{uuid4()}"
        allocation = f"{task}.1"
        token = minted(allocation)
        assert status(api, token, header=header) == (200, "")

        async def revoke(connection: Connection) -> None:
            mine = allocation_sessions.c.allocation_id == allocation
            await connection.execute(update(allocation_sessions).where(mine).values(revoked_at=SystemClock().now()))
            await announce(connection, AllocationChanged(allocation_id=allocation, task_id=task, what="ended"))

        world.in_database(revoke)
        return lambda: status(api, token, header=header) == (401, "invalid credentials")

    hear_of_soon(end)


def test_access_tokens_live_as_long_as_asked(api: ApiProcess, admin: httpx.Client, user: httpx.Client) -> None:
    ident = created(admin, "robot")
    made = admin.post("/api/v1/tokens", json={"userId": ident, "lifespan": "48h", "description": "ci"}).json()
    assert status(api, made["token"])[0] == 200
    (info,) = admin.get("/api/v1/tokens", params={"username": "robot"}).json()["tokenInfo"]
    assert (info["id"], info["description"], info["revoked"]) == (made["tokenId"], "ci", False)
    assert made["token"] not in str(info)

    refused = user.post("/api/v1/tokens", json={"userId": 2})
    assert refused.status_code == 403
    assert "only admin privileged users can create token" in refused.json()["error"]["error"]
    assert user.get("/api/v1/tokens").json()["tokenInfo"] == [], "others see their own"

    too_long = admin.post("/api/v1/tokens", json={"userId": ident, "lifespan": "721h"})
    assert too_long.json()["error"]["error"] == "token Lifespan must be less than max token lifespan"
    assert admin.post("/api/v1/tokens", json={"userId": 999}).status_code == 404

    revoked = admin.patch(f"/api/v1/tokens/{made['tokenId']}", json={"setRevoked": True, "description": None})
    assert revoked.json()["tokenInfo"]["revoked"] is True
    assert status(api, made["token"]) == (401, "user access token revoked")
    again = admin.patch(f"/api/v1/tokens/{made['tokenId']}", json={"description": "x"})
    assert again.json()["error"]["error"] == f"unable to update inactive token with ID {made['tokenId']}"
    assert admin.get("/api/v1/tokens", params={"username": "robot"}).json()["tokenInfo"] == []
    shown = admin.get("/api/v1/tokens", params={"username": "robot", "showInactive": "true"}).json()["tokenInfo"]
    assert [one["id"] for one in shown] == [made["tokenId"]]


def test_deactivation_revokes_access_tokens_and_a_password_does_not(api: ApiProcess, admin: httpx.Client) -> None:
    ident = created(admin, "bot2")
    token = admin.post("/api/v1/tokens", json={"userId": ident}).json()["token"]
    login = api.token("bot2", "a")
    admin.post(f"/api/v1/users/{ident}/password", content=b'"b"')
    assert status(api, login)[0] == 401
    assert status(api, token)[0] == 200
    admin.patch(f"/api/v1/users/{ident}", json={"active": False})
    admin.patch(f"/api/v1/users/{ident}", json={"active": True})
    assert status(api, token) == (401, "user access token revoked")


async def test_a_token_that_expires_ends_at_once_though_it_was_just_seen(database_url: str, clock: FakeClock) -> None:
    token = new_token()
    expires_at = clock.now() + timedelta(seconds=1)
    async with connect_database(DatabaseSettings(url=database_url, pool_size=1)) as db:
        async with db.transaction() as connection:
            row = {"user_id": 1, "token_hash": digest(token), "token_type": "LOGIN", "expires_at": expires_at}
            await connection.execute(insert(user_sessions).values(**row))
        sessions = Sessions(db=db, clock=clock)
        assert (await sessions.authenticate(Credentials(token, TokenKind.USER))).user_id == 1
        clock.advance(1)
        with pytest.raises(Unauthenticated):
            await sessions.authenticate(Credentials(token, TokenKind.USER))


def test_wrong_logins_are_logged_and_slowed_and_say_nothing_about_names(world: World) -> None:
    with world.api("guessed") as api, httpx.Client(base_url=api.url, timeout=60) as stranger:

        def guess(name: str) -> tuple[int, str]:
            reply = stranger.post("/api/v1/auth/login", json={"username": name, "password": "wrong"})
            return reply.status_code, reply.json()["error"]["error"]

        began = time.monotonic()
        assert {guess("nobody") for _ in range(FREE_BY_NAME_AND_ADDRESS + 2)} == {(401, "invalid credentials")}
        assert time.monotonic() - began >= FIRST_WAIT_S
        assert guess("determined") == (401, "invalid credentials")
        assert api.token("determined")
        failed = [json.loads(line) for line in api.process.log().splitlines() if "login.failed" in line]
        assert [entry["user"] for entry in failed] == ["nobody"] * (FREE_BY_NAME_AND_ADDRESS + 2) + ["determined"]
        assert {entry["address"] for entry in failed} == {"127.0.0.1"}


async def test_wrong_logins_of_one_client_keep_nobody_else_of_its_address_from_logging_in(world: World) -> None:
    config = world.directory / "with-scim.yaml"
    config.write_text("scim: {enabled: true, auth: {username: provider, password: right}}")
    with world.api("office", cluster_config=str(config)) as api:
        async with httpx.AsyncClient(base_url=api.url, timeout=60, verify=NO_TLS) as office:
            guesses = [
                asyncio.create_task(
                    office.post("/api/v1/auth/login", json={"username": f"user{number % 8}", "password": "wrong"})
                )
                for number in range(40)
            ]
            programs = [
                asyncio.create_task(office.get("/scim/v2/Users", auth=("provider", f"{number}")))
                for number in range(30)
            ]
            await eventually(lambda: "login.failed" in api.process.log())  # all the others wait by then
            reply = await office.post("/api/v1/auth/login", json={"username": "determined", "password": ""})
            assert reply.status_code == 200
            failed = [json.loads(line) for line in api.process.log().splitlines() if "login.failed" in line]
            checked = sum(entry["user"].startswith("user") for entry in failed)
            assert checked < len(guesses) / 2, "it waited for one of each name that is guessed at, not for all of them"
            await eventually(lambda: api.process.log().count("login.failed") > FREE_BY_ADDRESS)
            reply = await office.post("/api/v1/auth/login", json={"username": "determined", "password": ""})
            assert reply.status_code == 200
            for each in (*guesses, *programs):
                each.cancel()
            await asyncio.gather(*guesses, *programs, return_exceptions=True)


@pytest.mark.parametrize(
    ("trusted", "counted"), [((), "127.0.0.1"), (("127.0.0.0/8",), "9.9.9.9"), (("10.0.0.0/8",), "127.0.0.1")]
)
def test_an_address_counts_as_a_trusted_proxy_tells_it_and_as_nobody_else_does(
    world: World, trusted: tuple[str, ...], counted: str
) -> None:
    http = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1, "trusted_proxies": trusted}
    with world.api(f"behind-{len(trusted)}-{counted}", http=http) as api, httpx.Client(base_url=api.url) as proxy:
        # What the client itself has claimed comes first; the proxy adds whom it has seen.
        said = {"X-Forwarded-For": "1.2.3.4, 9.9.9.9"}
        body = {"username": "nobody", "password": "wrong"}
        assert proxy.post("/api/v1/auth/login", json=body, headers=said).status_code == 401
        failed = [json.loads(line) for line in api.process.log().splitlines() if "login.failed" in line]
        assert [entry["address"] for entry in failed] == [counted]
