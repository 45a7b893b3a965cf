"""The api as a process: how it starts, ends, and gets over the loss of what it needs."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import pytest
from sqlalchemy import select

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, SecurityConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.tables.users import users
from libs.errors import InvalidRequest
from libs.ids import UserId
from libs.tasks.proxy_tokens import ProxyTokens, TokenHolder
from services.api.access import passwords
from services.api.bootstrap import bootstrap, read_proxy_secret
from tests.harness import NatsServer, PostgresServer, ServiceProcess
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.harness.services_role import as_services
from tests.harness.waiting import wait_until
from tests.integration.api.world import World, two_nodes


def asked(api: ApiProcess, path: str) -> httpx.Response:
    return httpx.get(f"{api.url}{path}", timeout=30, verify=NO_TLS)


def test_it_says_who_it_is_without_being_asked_who_one_is(api: ApiProcess) -> None:
    info = asked(api, "/info").json()
    assert info["version"] == "0.38.1"
    assert info["sso_providers"] is None
    assert asked(api, "/api/v1/master").json()["clusterId"] == info["cluster_id"]
    assert asked(api, "/api/v1/master/telemetry").json() == {"enabled": False, "segmentKey": ""}
    assert asked(api, "/").headers["location"] == "/det"
    for path in ("/det", "/det/experiments/1/overview"):
        assert "The WebUI is not part of this release" in asked(api, path).text


def test_health_tells_whether_launchers_report(api: ApiProcess, world: World) -> None:
    def becomes(status: str) -> None:
        managers = [{"cluster_name": "here", "status": status}]
        expected = {"status": "up", "database": "up", "bus": "up", "resource_managers": managers, "problems": {}}
        wait_until(lambda: asked(api, "/health").json() == expected, what=f"the manager is {status}")

    world.publish(two_nodes())
    becomes("up")
    long_ago = (datetime.now(UTC) - timedelta(minutes=10)).isoformat()
    world.publish(msgspec.structs.replace(two_nodes(), seen_at=long_ago))
    becomes("down")
    world.publish(two_nodes())
    becomes("up")


def test_masters_log_is_followed(api: ApiProcess, admin: httpx.Client) -> None:
    assert admin.get("/api/v1/master/logs?follow=true&limit=1").status_code == 400
    with admin.stream("GET", "/api/v1/master/logs?follow=true&offset=-1", timeout=20) as reply:
        lines = reply.iter_lines()
        assert "logEntry" in next(lines)
        change = {"config": {"log": {"level": "LOG_LEVEL_INFO"}}, "fieldMask": {"paths": ["log.level"]}}
        assert admin.patch("/api/v1/master/config", json=change).status_code == 200
        assert "now=info" in next(line for line in lines if "log.level_set" in line)


def test_a_killed_api_comes_back_with_everybody_logged_in(world: World) -> None:
    with world.api("killed") as api:
        token = api.token()
        api.restart()
        reply = httpx.get(
            f"{api.url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=30, verify=NO_TLS
        )
        assert reply.status_code == 200


def test_termination_cuts_those_who_wait(world: World) -> None:
    with world.api("ended") as api, api.client() as client:
        follows, cut = threading.Event(), threading.Event()

        def follow() -> None:
            try:
                with client.stream("GET", "/api/v1/master/logs?follow=true", timeout=60) as reply:
                    follows.set()
                    for _ in reply.iter_lines():
                        pass
            except httpx.HTTPError:
                pass
            cut.set()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        assert follows.wait(30)
        started = time.monotonic()
        assert api.process.stop(grace_s=40) == 0
        assert time.monotonic() - started < 20
        assert cut.wait(30)


def test_a_lost_database_is_a_pause(world: World, postgres_server: PostgresServer) -> None:
    with world.api("paused") as api, api.client() as client:
        postgres_server.kill()
        try:
            reply = client.get("/api/v1/users")
            assert reply.status_code == 503
            assert reply.headers["retry-after"]
            down = client.get("/health")
            assert (down.status_code, down.json()["problems"]) == (503, {"database": "does not answer"})
            assert client.get("/info").status_code == 200
        finally:
            postgres_server.start()
        wait_until(lambda: client.get("/health").status_code == 200, what="the database is back")
        assert client.get("/api/v1/users").status_code == 200


def test_a_lost_bus_is_hardly_noticed(world: World, nats_server: NatsServer) -> None:
    with world.api("deaf") as api, api.client() as client:
        nats_server.kill()
        try:
            assert client.get("/api/v1/users").status_code == 200
            assert client.post("/api/v1/workspaces", json={"name": "meanwhile"}).status_code == 200
            down = client.get("/health")
            assert (down.status_code, down.json()["problems"]) == (503, {"bus": "not connected"})
        finally:
            nats_server.start()
        wait_until(lambda: client.get("/health").status_code == 200, what="the bus is back")


def test_a_wrong_setting_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("http: {prot: 80}")
    process = ServiceProcess("services.api.main", "--settings", str(path), log_path=tmp_path / "log")
    process.start()
    wait_until(lambda: not process.is_running, what="it gives up")
    assert process.returncode == 1
    assert "did you mean port?" in process.log()


@pytest.fixture
def fresh_url(postgres_server: PostgresServer, database_template: str) -> str:
    postgres_server.execute("DROP DATABASE IF EXISTS fresh WITH (FORCE)")
    postgres_server.execute(f"CREATE DATABASE fresh TEMPLATE {database_template}")
    return as_services(postgres_server.url("fresh"))


async def test_the_initial_password_is_applied_once(fresh_url: str) -> None:
    def config(password: str, *switches: str) -> ClusterConfig:
        return ClusterConfig(security=SecurityConfig(initial_user_password=password), feature_switches=tuple(switches))

    async with connect_database(DatabaseSettings(url=fresh_url, pool_size=1)) as db:
        with pytest.raises(InvalidRequest, match="initial_user_password"):
            await bootstrap(db, SystemClock(), config("", "prevent_blank_password"))
        first = await bootstrap(db, SystemClock(), config("Initial1"))
        assert await bootstrap(db, SystemClock(), config("Changed2")) == first
        async with db.read() as connection:
            kept = (await connection.execute(select(users.c.password_hash))).scalars().all()
    assert len(kept) == 2
    for secret in kept:
        assert await passwords.matches(passwords.salted("Initial1"), secret)


async def test_a_new_installation_gets_the_id_that_its_launchers_know(fresh_url: str) -> None:
    config = ClusterConfig()
    async with connect_database(DatabaseSettings(url=fresh_url, pool_size=1)) as db:
        assert await bootstrap(db, SystemClock(), config, cluster_id="11111111-aaaa") == "11111111-aaaa"
        assert await bootstrap(db, SystemClock(), config) == "11111111-aaaa"
        with pytest.raises(InvalidRequest, match="installation 11111111-aaaa"):
            await bootstrap(db, SystemClock(), config, cluster_id="22222222-bbbb")


async def test_every_replica_proves_proxy_tokens_with_the_same_secret(fresh_url: str) -> None:
    async with connect_database(DatabaseSettings(url=fresh_url, pool_size=1)) as db:
        token = ProxyTokens(await read_proxy_secret(db)).issue(TokenHolder(UserId(1), "notebook"))
        assert ProxyTokens(await read_proxy_secret(db)).holder(token) == (1, "notebook")


def test_a_head_without_end_is_refused_to_anybody(api: ApiProcess) -> None:
    with httpx.Client(base_url=api.url, timeout=30, verify=NO_TLS) as stranger:
        assert stranger.get("/info", headers={"x-long": "a" * 100_000}).status_code == 431
        assert stranger.get("/info", headers=[("x-many", "a")] * 200).status_code == 431
        assert stranger.get("/info").status_code == 200
