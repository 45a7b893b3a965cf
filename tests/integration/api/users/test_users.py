"""The rules for users beyond what the command line can ask for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest


def error_of(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def created(admin: httpx.Client, username: str, **fields: Any) -> dict[str, Any]:
    body = {"user": {"username": username, "active": True, **fields}}
    reply = admin.post("/api/v1/users", json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["user"]
    return found


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"username": "jürgen"}, "Display name and username cannot contain non-ASCII characters."),
        ({"username": " x "}, "Display name or username value has minimum length."),
        ({"username": "aDMIN"}, "Non-admin user cannot be renamed 'admin'"),
        ({"username": "Determined"}, "User cannot be renamed 'determined'"),
        ({"username": "fine", "displayName": "admin"}, "Non-admin user cannot be renamed 'admin'"),
        (
            {"username": "fine", "agentUserGroup": {"agentUid": 1, "agentUser": "u"}},
            "agentUid, agentGid, agentUser and agentGroup cannot be empty",
        ),
    ],
)
def test_names_that_would_mislead_are_refused(admin: httpx.Client, fields: dict[str, Any], text: str) -> None:
    assert error_of(admin.post("/api/v1/users", json={"user": {"active": True, **fields}})) == (400, text)


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/api/v1/users", {"user": {"username": "twin"}}, "user already exists"),
        ("/api/v1/workspaces", {"name": "twin"}, "avoid names equal to other workspaces (case-insensitive)"),
    ],
)
def test_of_many_with_one_name_one_wins(admin: httpx.Client, path: str, body: dict[str, Any], text: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: admin.post(path, json=body), range(8)))
    lost = [error_of(reply) for reply in replies if reply.status_code != 200]
    assert lost == [(409, text)] * 7


def test_a_display_name_is_nobody_elses_name(admin: httpx.Client) -> None:
    created(admin, "ann", displayName="Ann")
    reply = admin.post("/api/v1/users", json={"user": {"username": "bob", "displayName": "ANN"}})
    assert reply.status_code == 409


def test_remote_users_have_no_password(admin: httpx.Client) -> None:
    body = {"user": {"username": "far", "remote": True}, "password": "x"}
    assert error_of(admin.post("/api/v1/users", json=body)) == (400, "cannot set password for remote user")


def test_becoming_remote_brings_no_password(admin: httpx.Client) -> None:
    path = f"/api/v1/users/{created(admin, 'leaves')['id']}"
    reply = admin.patch(path, json={"remote": True, "password": "x"})
    assert error_of(reply) == (400, "cannot set password for remote user")
    assert admin.get(path).json()["user"]["remote"] is False


def test_the_built_in_user_may_have_its_name_back(admin: httpx.Client) -> None:
    assert admin.patch("/api/v1/users/2", json={"username": "other"}).status_code == 200
    back = admin.patch("/api/v1/users/2", json={"username": "determined"})
    assert back.json()["user"]["username"] == "determined"


def test_an_empty_link_removes_the_link(admin: httpx.Client) -> None:
    link = {"agentUid": 7, "agentUser": "u", "agentGid": 8, "agentGroup": "g"}
    user = created(admin, "linked", agentUserGroup=link)
    assert user["agentUserGroup"] == link
    patched = admin.patch(f"/api/v1/users/{user['id']}", json={"agentUserGroup": {}}).json()["user"]
    assert patched["agentUserGroup"] is None


def test_nulls_leave_everything_as_it_is(admin: httpx.Client) -> None:
    user = created(admin, "steady", displayName="S")
    nothing = dict.fromkeys(("username", "password", "admin", "active", "displayName", "agentUserGroup", "remote"))
    patched = admin.patch(f"/api/v1/users/{user['id']}", json=nothing).json()["user"]
    assert {**patched, "modifiedAt": ""} == {**user, "modifiedAt": ""}


def test_users_change_themselves_and_nobody_else(admin: httpx.Client, user: httpx.Client) -> None:
    assert user.patch("/api/v1/users/2", json={"displayName": "Me"}).json()["user"]["displayName"] == "Me"
    assert user.patch("/api/v1/users/2", json={"admin": True}).status_code == 403
    assert user.patch("/api/v1/users/1", json={"displayName": "You"}).status_code == 403
    assert user.post("/api/v1/users/1/password", content=b'"x"').status_code == 403


def test_lists_are_filtered_sorted_and_cut(admin: httpx.Client) -> None:
    for name in ("zoe_1", "zoe%2", "zoe3"):
        created(admin, name)
    found = admin.get("/api/v1/users", params={"name": "oe", "sortBy": "SORT_BY_USER_NAME", "orderBy": "ORDER_BY_DESC"})
    assert [one["username"] for one in found.json()["users"]] == ["zoe_1", "zoe3", "zoe%2"]
    literally = admin.get("/api/v1/users", params={"name": "e%"}).json()["users"]
    assert [one["username"] for one in literally] == ["zoe%2"]
    page = admin.get("/api/v1/users", params={"name": "zoe", "offset": "-2", "limit": "1"}).json()
    assert page["pagination"] == {"offset": -2, "limit": 1, "startIndex": 1, "endIndex": 2, "total": 3}
    assert error_of(admin.get("/api/v1/users", params={"offset": "999"})) == (400, "offset out of bounds")


def test_many_are_deactivated_at_once(admin: httpx.Client) -> None:
    ids = [created(admin, f"many{n}")["id"] for n in range(2)]
    results = admin.patch("/api/v1/users", json={"userIds": [*ids, 99999], "activate": False}).json()["results"]
    assert results == [
        {"error": "", "id": ids[0]},
        {"error": "", "id": ids[1]},
        {"error": "user not found", "id": 99999},
    ]
    assert admin.get(f"/api/v1/users/{ids[0]}").json()["user"]["active"] is False


@pytest.mark.parametrize("field", ["key", "storagePath"])
def test_names_of_settings_have_a_length(admin: httpx.Client, field: str) -> None:
    setting = {"key": "k", "storagePath": "p", "value": "1"}
    # Letters that take as many bytes as any.
    longest = {"key": "\U0001f600" * 256, "storagePath": "\U0001f601" * 256, "value": "1"}
    assert admin.post("/api/v1/users/setting", json={"settings": [longest]}).status_code == 200
    reply = admin.post("/api/v1/users/setting", json={"settings": [{**setting, field: "x" * 257}]})
    assert reply.status_code == 400
    assert reply.json()["error"]["error"] == f"{field}: must not be longer than 256 characters"
    assert admin.post("/api/v1/users/setting/reset").status_code == 200


def test_settings_of_a_user_have_a_size(user: httpx.Client) -> None:
    many = [{"key": f"k{number}", "storagePath": "p", "value": "1"} for number in range(1001)]
    assert user.post("/api/v1/users/setting", json={"settings": many[:1000]}).status_code == 200
    assert user.post("/api/v1/users/setting", json={"settings": many[1000:]}).status_code == 400
    large = [{"key": "k0", "storagePath": "p", "value": "x" * 2**20}]
    assert user.post("/api/v1/users/setting", json={"settings": large}).status_code == 400
    assert len(user.get("/api/v1/users/setting").json()["settings"]) == 1000
    assert user.post("/api/v1/users/setting/reset").status_code == 200


def test_settings_are_everyones_own(admin: httpx.Client, user: httpx.Client) -> None:
    theme = {"key": "theme", "storagePath": "ui", "value": "dark"}
    other = {"key": "size", "storagePath": "ui", "value": "9"}
    admin.post("/api/v1/users/setting", json={"settings": [theme, other]})
    assert user.get("/api/v1/users/setting").json() == {"settings": []}
    admin.post("/api/v1/users/setting", json={"settings": [{**theme, "value": ""}, {**other, "value": "10"}]})
    assert admin.get("/api/v1/users/setting").json() == {"settings": [{**other, "value": "10"}]}
    admin.post("/api/v1/users/setting/reset")
    assert admin.get("/api/v1/users/setting").json() == {"settings": []}
