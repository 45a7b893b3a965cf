"""Access tokens: each sentence of docs/reference/platform.md 2.4, by the unmodified client, over HTTP where it has no
way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from libs.db.engine import Connection
from libs.db.tables.users import user_sessions
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.integration.api.world import World
from tests.scenarios.access_tokens import ADMIN, LIFETIMES_H, ROBOT, SAID, SORTED, UNPARSABLE, Said

PASSWORD = "Passw0rd!"
Info = Mapping[str, Any]


@dataclass(frozen=True)
class Site:
    clients: Mapping[str, Det]
    ids: Mapping[str, int]
    token: str
    """The good one of the robot."""


@pytest.fixture(scope="module")
def site(
    world: World, api: ApiProcess, det: Det, admin: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    det("user", "create", "robot", "--password", PASSWORD)
    robot = Det(url=api.url, home=tmp_path_factory.mktemp("robot"))
    robot("user", "login", "robot", answers=[PASSWORD])
    users = {name: user_id(admin, name) for name in ("robot", "admin")}
    made = {
        name: admin.post("/api/v1/tokens", json={"userId": users[who], "description": f"of {name}"}).json()
        for name, who in (
            ("good", "robot"),
            ("spare", "robot"),
            ("revoked", "robot"),
            ("old", "robot"),
            ("another", "admin"),
        )
    }
    ids = {name: each["tokenId"] for name, each in made.items()}
    assert admin.patch(f"/api/v1/tokens/{ids['revoked']}", json={"setRevoked": True}).status_code == 200

    async def expire(connection: Connection) -> None:
        old = update(user_sessions).where(user_sessions.c.id == ids["old"])
        await connection.execute(old.values(expires_at=user_sessions.c.created_at))

    world.in_database(expire)
    return Site({ADMIN: det, ROBOT: robot}, ids, made["good"]["token"])


def user_id(admin: httpx.Client, name: str) -> int:
    found: int = admin.get(f"/api/v1/users/{name}/by-username").json()["user"]["id"]
    return found


def listed(admin: httpx.Client, **query: Any) -> list[Info]:
    found: list[Info] = admin.get("/api/v1/tokens", params={"showInactive": "true", **query}).json()["tokenInfo"]
    return found


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.sentence)
def test_sentence(site: Site, said: Said) -> None:
    client, arguments = site.clients[said.who], [each.format(**site.ids) for each in said.arguments]
    ended = client.fails("token", *arguments) if said.refused else client("token", *arguments)
    printed = " ".join((ended.out + ended.err).split())
    assert [each for each in said.says if each.format(**site.ids) not in printed] == [], printed
    assert [each for each in said.silent if each in printed] == [], printed


@pytest.mark.parametrize(("arguments", "hours"), LIFETIMES_H)
def test_a_token_lives_as_long_as_the_client_asks(
    site: Site, admin: httpx.Client, arguments: tuple[str, ...], hours: int
) -> None:
    printed = site.clients[ADMIN]("token", "create", "robot", *arguments).out
    ident = int(printed.split("TokenID:")[1].split()[0])
    (info,) = listed(admin, tokenIds=ident)
    lives = datetime.fromisoformat(info["expiry"]) - datetime.fromisoformat(info["createdAt"])
    assert lives == timedelta(hours=hours)


@pytest.mark.parametrize("lifespan", UNPARSABLE)
def test_what_is_no_lifespan_is_refused(admin: httpx.Client, lifespan: str) -> None:
    reply = admin.post("/api/v1/tokens", json={"lifespan": lifespan})
    assert reply.status_code == 400, reply.text


@pytest.mark.parametrize("order", ["ORDER_BY_ASC", "ORDER_BY_DESC"])
@pytest.mark.parametrize("key", SORTED)
def test_lists_are_sorted_and_paged(site: Site, admin: httpx.Client, key: str, order: str) -> None:
    query = {"tokenIds": list(site.ids.values()), "sortBy": key, "orderBy": order}
    found = listed(admin, **query)
    assert {info["id"] for info in found} == set(site.ids.values())
    values = [info[SORTED[key]] for info in found]
    assert values == sorted(values, reverse=order == "ORDER_BY_DESC")
    reply = admin.get("/api/v1/tokens", params={**query, "showInactive": "true", "offset": 1, "limit": 2}).json()
    assert reply["tokenInfo"] == found[1:3]
    assert reply["pagination"] == {"offset": 1, "limit": 2, "startIndex": 1, "endIndex": 3, "total": len(found)}


def test_a_change_of_a_user_that_says_nothing_of_active_leaves_tokens_alone(
    site: Site, api: ApiProcess, admin: httpx.Client
) -> None:
    path = f"/api/v1/users/{user_id(admin, 'robot')}"
    for change in ({"displayName": "Robot"}, {"admin": False}, {"active": True}):
        assert admin.patch(path, json=change).status_code == 200
        me = httpx.get(f"{api.url}/api/v1/me", headers={"Authorization": f"Bearer {site.token}"})
        assert me.json()["user"]["username"] == "robot", change


def test_a_login_by_token_is_refused_without_a_good_one(site: Site, api: ApiProcess, tmp_path: Path) -> None:
    stranger = Det(url=api.url, home=tmp_path)
    stranger.fails("token", "login", "garbage")
    assert "robot" not in stranger("user", "whoami").out
    assert "Authenticated as robot." in stranger("token", "login", site.token).out
    assert "user 'robot'" in stranger("user", "whoami").out
