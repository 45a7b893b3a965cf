"""Groups of users and their roles over HTTP, where the command line cannot ask for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.integration.api.users.test_users import created, error_of


def group(admin: httpx.Client, name: str, *user_ids: int) -> int:
    reply = admin.post("/api/v1/groups", json={"name": name, "addUsers": list(user_ids)})
    assert reply.status_code == 200, reply.text
    return int(reply.json()["group"]["groupId"])


def assignment(role_id: int, workspace_id: int | None = None, **holder: int) -> dict[str, Any]:
    scope = {} if workspace_id is None else {"scopeWorkspaceId": workspace_id}
    one = {**holder, "roleAssignment": {"role": {"roleId": role_id}, **scope}}
    return {"userRoleAssignments" if "userId" in holder else "groupRoleAssignments": [one]}


def found(client: httpx.Client, **search: Any) -> list[str]:
    reply = client.post("/api/v1/groups/search", json={"limit": 500, **search})
    assert reply.status_code == 200, reply.text
    return [each["group"]["name"] for each in reply.json()["groups"]]


def test_a_group_has_members_and_a_name(admin: httpx.Client) -> None:
    ann, ben = (created(admin, name)["id"] for name in ("g-ann", "g-ben"))
    group_id = group(admin, "readers", ann)
    path = f"/api/v1/groups/{group_id}"
    changed = admin.put(path, json={"name": "writers", "addUsers": [ben], "removeUsers": [ann]}).json()["group"]
    assert (changed["name"], [user["id"] for user in changed["users"]]) == ("writers", [ben])
    assert admin.get(path).json()["group"] == changed
    assert found(admin, userId=ben) == ["writers"]
    assert found(admin, name="writers") == ["writers"]
    assert found(admin, name="writer") == []
    assert admin.delete(path).status_code == 200
    assert admin.get(path).status_code == 404


def test_the_groups_that_stand_for_users_are_not_to_be_seen(admin: httpx.Client) -> None:
    assert not [name for name in found(admin) if "DeterminedPersonalGroup" in name]
    for call in ("get", "delete"):
        assert admin.request(call, "/api/v1/groups/1").status_code == 404
    assert admin.put("/api/v1/groups/1", json={"name": "x"}).status_code == 404
    body = {"userIds": [2], "addGroups": [1], "removeGroups": []}
    assert admin.patch("/api/v1/users/assignments", json=body).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": ""}, 400),
        ({"name": "1DeterminedPersonalGroup"}, 400),
        ({"name": "x" * 257}, 400),
        ({"name": "of-nobody", "addUsers": [99999]}, 404),
        ({"name": "of-too-many", "addUsers": [2**70]}, 400),
        ({"name": "there-already"}, 409),
    ],
)
def test_what_cannot_be_a_group_is_refused(admin: httpx.Client, body: dict[str, Any], status: int) -> None:
    if body["name"] == "there-already":
        group(admin, "there-already")
    before = found(admin)
    assert error_of(admin.post("/api/v1/groups", json=body))[0] == status
    assert found(admin) == before


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_search_says_how_many_it_wants(admin: httpx.Client, limit: int) -> None:
    reply = admin.post("/api/v1/groups/search", json={"limit": limit})
    assert error_of(reply) == (400, "Bad request: limit is required and must be <= 500")


def test_a_change_of_members_happens_as_a_whole_or_not_at_all(admin: httpx.Client) -> None:
    ann, ben = (created(admin, name)["id"] for name in ("w-ann", "w-ben"))
    path = f"/api/v1/groups/{group(admin, 'whole', ann)}"
    assert admin.put(path, json={"name": "other", "addUsers": [ben, ann]}).status_code == 409
    assert admin.put(path, json={"name": "other", "removeUsers": [ann, ben]}).status_code == 404
    assert [user["id"] for user in admin.get(path).json()["group"]["users"]] == [ann]
    assert admin.get(path).json()["group"]["name"] == "whole"


def test_of_administrators_who_change_a_group_at_once_each_hears_what_became_of_it(admin: httpx.Client) -> None:
    user_id = created(admin, "c-ann")["id"]
    path = f"/api/v1/groups/{group(admin, 'contended')}"
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: admin.put(path, json={"addUsers": [user_id]}), range(8)))
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: admin.put(path, json={"removeUsers": [user_id]}), range(8)))
    assert sorted(reply.status_code for reply in replies) == [200] + [404] * 7


def test_many_users_change_many_groups_at_once(admin: httpx.Client) -> None:
    ann, ben = (created(admin, name)["id"] for name in ("m-ann", "m-ben"))
    one, two = group(admin, "m-one", ann), group(admin, "m-two", ann, ben)
    body = {"userIds": [ann, ben], "addGroups": [one], "removeGroups": [two]}
    for _ in range(2):
        assert admin.patch("/api/v1/users/assignments", json=body).status_code == 200
        assert (found(admin, userId=ann), found(admin, userId=ben)) == (["m-one"], ["m-one"])


def test_a_role_is_given_once(admin: httpx.Client) -> None:
    user_id = created(admin, "r-ann")["id"]
    body = assignment(4, 1, userId=user_id)
    with ThreadPoolExecutor(4) as threads:
        replies = list(threads.map(lambda _: admin.post("/api/v1/roles/add-assignments", json=body), range(4)))
    assert sorted(reply.status_code for reply in replies) == [200, 409, 409, 409]
    assert admin.post("/api/v1/roles/remove-assignments", json=body).status_code == 200
    assert admin.post("/api/v1/roles/remove-assignments", json=body).status_code == 404


def test_roles_are_given_all_or_none(admin: httpx.Client) -> None:
    user_id = created(admin, "a-ann")["id"]
    both = [assignment(4, 1, userId=user_id), assignment(5, 999999, userId=user_id)]
    body = {"userRoleAssignments": [each["userRoleAssignments"][0] for each in both]}
    assert admin.post("/api/v1/roles/add-assignments", json=body).status_code == 404
    assert admin.get(f"/api/v1/roles/search/by-user/{user_id}").json() == {"roles": []}


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 400, "must specify at least one group or user assignment"),
        (assignment(3, 1, userId=2), 400, "a global-only permission cannot be assigned to a local scope"),
        (assignment(11, userId=2), 404, "role '11' not found"),
        (assignment(4, userId=99999), 404, "user '99999' not found"),
        (assignment(4, groupId=99999), 404, "group '99999' not found"),
        (assignment(4, groupId=1), 404, "group '1' not found"),
        (assignment(4, 99999, userId=2), 404, "workspace '99999' not found"),
    ],
)
def test_a_role_that_cannot_be_given_is_refused(
    admin: httpx.Client, body: dict[str, Any], status: int, text: str
) -> None:
    assert error_of(admin.post("/api/v1/roles/add-assignments", json=body)) == (status, text)


@pytest.mark.parametrize("number", [2**31, 2**63, 2**70])
def test_numbers_beyond_those_of_ids_are_refused(admin: httpx.Client, number: int) -> None:
    for path in ("groups/{}", "roles/search/by-user/{}", "roles/search/by-group/{}", "roles/workspace/{}"):
        assert admin.get(f"/api/v1/{path.format(number)}").status_code == 400
    for body in (assignment(4, number, userId=2), assignment(number, userId=2), assignment(4, groupId=number)):
        assert admin.post("/api/v1/roles/add-assignments", json=body).status_code == 400


def test_only_administrators_change_groups_and_roles(user: httpx.Client) -> None:
    refused = (403, "user does not have permission")
    assert error_of(user.post("/api/v1/groups", json={"name": "mine"})) == refused
    assert error_of(user.post("/api/v1/roles/add-assignments", json=assignment(4, userId=2))) == refused
    assert user.post("/api/v1/roles/search", json={}).json()["pagination"]["total"] == 10


def test_roles_are_those_of_the_reference(admin: httpx.Client) -> None:
    roles = admin.post("/api/v1/roles/search", json={"limit": 500}).json()["roles"]
    assert [role["name"] for role in roles] == sorted(role["name"] for role in roles)
    masks = {role["roleId"]: role["scopeTypeMask"]["workspace"] for role in roles}
    assert [role_id for role_id, local in sorted(masks.items()) if local] == [2, 4, 5, 6, 7, 9]
    local = admin.post("/api/v1/roles/search/by-assignability", json={"workspaceId": 1, "limit": 10}).json()["roles"]
    assert sorted(role["roleId"] for role in local) == [2, 4, 5, 6, 7, 9]


@pytest.mark.parametrize("path", ["search", "search/by-assignability"])
def test_pages_of_roles_take_any_limit(admin: httpx.Client, path: str) -> None:
    """Pages of the reference ask for 1000."""
    whole = admin.post(f"/api/v1/roles/{path}", json={}).json()
    for limit in (1000, 2**31 - 1):
        page = admin.post(f"/api/v1/roles/{path}", json={"limit": limit}).json()
        assert page == {**whole, "pagination": {**whole["pagination"], "limit": limit}}
    negative = admin.post(f"/api/v1/roles/{path}", json={"limit": -1})
    assert error_of(negative) == (400, "limit: must not be negative")


def test_a_new_installation_has_one_administrator(admin: httpx.Client, user: httpx.Client) -> None:
    mine = admin.get("/api/v1/permissions/summary").json()
    assert mine["assignments"] == [{"roleId": 1, "scopeWorkspaceIds": [], "scopeCluster": True}]
    assert len(mine["roles"][0]["permissions"]) == 60
    assert user.get("/api/v1/permissions/summary").json() == {"roles": [], "assignments": []}
