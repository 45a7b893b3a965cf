"""Weights of the shares of users, groups and workspaces: who sets them, and who sees which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

PATH = "/api/v1/resolute/shares"


@pytest.fixture(autouse=True)
def no_weights(admin: httpx.Client) -> Iterator[None]:
    yield
    for share in admin.get(PATH).json()["shares"]:
        admin.delete(f"{PATH}/{share['id']}")


def put(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.put(PATH, json=body)


def listed(client: httpx.Client, **query: str) -> list[tuple[str, str, float]]:
    found = client.get(PATH, params=query).json()["shares"]
    return [(one["scope"], one["name"], one["weight"]) for one in found]


def error(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def test_a_weight_is_set_replaced_and_removed(admin: httpx.Client) -> None:
    made = put(admin, scope="user", name="DETERMINED", weight=2.5).json()["share"]
    found = {name: made[name] for name in ("scope", "name", "weight", "setBy")}
    assert found == {"scope": "user", "name": "determined", "weight": 2.5, "setBy": "admin"}
    again = put(admin, scope="user", name="determined", weight=4).json()["share"]
    assert (again["id"], again["weight"]) == (made["id"], 4)
    assert listed(admin) == [("user", "determined", 4)]
    assert admin.delete(f"{PATH}/{made['id']}").json() == {}
    assert listed(admin) == []
    assert error(admin.delete(f"{PATH}/{made['id']}")) == (404, f"share '{made['id']}' not found")


def test_whom_it_concerns_sees_it(admin: httpx.Client, user: httpx.Client) -> None:
    me = user.get("/api/v1/me").json()["user"]
    for group, members in (("heavy", []), ("light", [me["id"]])):
        admin.post("/api/v1/groups", json={"name": group, "addUsers": members})
        put(admin, scope="group", name=group, weight=20)
    put(admin, scope="user", name="admin", weight=2)
    put(admin, scope="user", name=me["username"], weight=3)
    put(admin, scope="workspace", name="Uncategorized", weight=4)
    seen = [("user", me["username"], 3), ("group", "light", 20), ("workspace", "Uncategorized", 4)]
    assert listed(user) == seen
    assert listed(user, scope="group") == [("group", "light", 20)]
    assert sorted(listed(admin)) == sorted([*seen, ("user", "admin", 2), ("group", "heavy", 20)])
    assert error(put(user, scope="user", name="admin", weight=9)) == (
        403,
        "only admin privileged users can set weights of shares",
    )


def test_weights_of_the_deleted_are_not_shown(admin: httpx.Client) -> None:
    group = admin.post("/api/v1/groups", json={"name": "weighed"}).json()["group"]["groupId"]
    put(admin, scope="group", name="weighed", weight=1)
    admin.delete(f"/api/v1/groups/{group}")
    assert listed(admin) == []


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"name": "admin", "weight": 1}, (400, "scope: one of user, group, workspace")),
        ({"scope": "user", "weight": 1}, (400, "name: a weight needs the name of the user")),
        ({"scope": "user", "name": "admin"}, (400, "weight: a number greater than 0")),
        ({"scope": "user", "name": "admin", "weight": 0}, (400, "weight: a number greater than 0")),
        ({"scope": "user", "name": "nobody", "weight": 1}, (404, "user 'nobody' not found")),
        ({"scope": "group", "name": "nobody", "weight": 1}, (404, "group 'nobody' not found")),
    ],
)
def test_what_cannot_be_set_is_refused(admin: httpx.Client, body: dict[str, Any], refusal: tuple[int, str]) -> None:
    assert error(put(admin, **body)) == refusal
