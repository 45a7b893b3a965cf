"""Models of the registry: what they are called, where they are, who deletes them, and how they are listed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.integration.api.models.registry import ALL, answered, error_of, get_model, new_model
from tests.integration.api.workspaces.test_workspaces import INCOMPRESSIBLE, workspace


def listed(client: httpx.Client, **query: Any) -> list[str]:
    return [model["name"] for model in answered(client.get(ALL, params=query))["models"]]


def test_a_model_is_what_was_said_of_it(user: httpx.Client) -> None:
    fields = {"description": "digits", "notes": "# Digits", "metadata": {"a": 1.0, "b": [None]}}
    made = new_model(user, "mnist", **fields, labels=["x, y", "x, y", "z"])
    assert made == {
        "id": made["id"],
        "name": "mnist",
        "description": "digits",
        "notes": "# Digits",
        "metadata": {"a": 1, "b": [None]},
        "labels": ["x, y", "z"],
        "userId": 2,
        "username": "determined",
        "workspaceId": 1,
        "archived": False,
        "numVersions": 0,
        "creationTime": made["creationTime"],
        "lastUpdatedTime": made["creationTime"],
    }
    assert get_model(user, "mnist") == made == get_model(user, str(made["id"]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "model names cannot be blank"),
        ("  ", "model names cannot be blank"),
        ("two  spaces", "model names cannot have excessive spacing"),
        ("a/b", "model names cannot have slashes"),
        ("42", "model names cannot be only numbers"),
        ("..", "model names cannot be '.' or '..'"),
        ("x" * 513, "model names cannot be longer than 512 characters"),
        ("\0", "name: expected text without NUL characters"),
    ],
)
def test_names_that_are_refused(admin: httpx.Client, name: str, text: str) -> None:
    assert error_of(admin.post(ALL, json={"name": name})) == (400, text)
    new_model(admin, model := f"name-{abs(hash(name))}")
    if name:
        assert error_of(admin.patch(f"{ALL}/{model}", json={"name": name})) == (400, text)


def test_any_other_name_is_an_address(admin: httpx.Client) -> None:
    for name in ("grüße 💥", "50%", "a?b#c", INCOMPRESSIBLE[:512], "%2e%2e"):
        made = new_model(admin, name)
        found = admin.get(f"{ALL}/{quote(name)}")
        assert answered(found)["model"] == made, name


def test_names_are_unique_and_their_case_counts(admin: httpx.Client) -> None:
    new_model(admin, "Unique")
    taken = (409, "avoid names equal to other models (case-sensitive)")
    assert error_of(admin.post(ALL, json={"name": "Unique"})) == taken
    new_model(admin, "unique")
    assert error_of(admin.patch(f"{ALL}/unique", json={"name": "Unique"})) == taken
    assert answered(admin.patch(f"{ALL}/unique", json={"name": "unique"}))["model"]["name"] == "unique"


def test_of_many_at_once_one_gets_the_name(admin: httpx.Client) -> None:
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda _: admin.post(ALL, json={"name": "raced"}).status_code, range(6)))
    assert sorted(replies) == [200, *[409] * 5]


@pytest.mark.parametrize("ident", ["nobody", "99999", "99999999999999999999999", "9" * 5000, "0", "007x"])
def test_what_is_not_there(admin: httpx.Client, ident: str) -> None:
    missing = (404, f'model "{ident}" not found')
    one = f"{ALL}/{ident}"
    assert error_of(admin.get(one)) == missing
    assert error_of(admin.patch(one, json={"notes": "x"})) == missing
    assert error_of(admin.delete(one)) == missing
    for verb in ("archive", "unarchive"):
        assert error_of(admin.post(f"{one}/{verb}")) == missing
    assert error_of(admin.post(f"{one}/move", json={"destinationWorkspaceId": 1})) == missing
    assert error_of(admin.get(f"{one}/versions")) == missing
    assert error_of(admin.get(f"{one}/versions/1/metrics")) == missing


def test_a_patch_changes_what_it_names_and_tells_all(admin: httpx.Client) -> None:
    made = new_model(admin, "patched", description="d", notes="n", metadata={"a": 1}, labels=["a"])
    assert answered(admin.patch(f"{ALL}/patched", json={}))["model"] == made
    assert answered(admin.patch(f"{ALL}/patched", json={"notes": None}))["model"] == made
    change = {"name": "renamed", "description": "", "metadata": {}, "labels": ["b", "b"]}
    changed = answered(admin.patch(f"{ALL}/patched", json=change))["model"]
    moment = changed["lastUpdatedTime"]
    assert moment > made["lastUpdatedTime"]
    assert changed == {**made, **change, "labels": ["b"], "lastUpdatedTime": moment}
    assert get_model(admin, "renamed") == changed
    assert error_of(admin.patch(f"{ALL}/renamed", json={"labels": ["a", " "], "notes": "new"}))[0] == 400
    assert get_model(admin, "renamed") == changed


def test_an_archived_model_waits_to_be_unarchived(admin: httpx.Client) -> None:
    new_model(admin, "old")
    answered(admin.post(f"{ALL}/old/archive"))
    answered(admin.post(f"{ALL}/old/archive"))
    assert get_model(admin, "old")["archived"] is True
    refusal = (400, 'model "old" is archived and cannot be changed: unarchive it first')
    assert error_of(admin.patch(f"{ALL}/old", json={"notes": "x"})) == refusal
    assert error_of(admin.post(f"{ALL}/old/move", json={"destinationWorkspaceId": 1})) == refusal
    answered(admin.post(f"{ALL}/old/unarchive"))
    assert answered(admin.patch(f"{ALL}/old", json={"notes": "x"}))["model"]["notes"] == "x"


def test_models_are_made_in_workspaces_and_move_between_them(admin: httpx.Client) -> None:
    first, second = workspace(admin, "registry 1")["id"], workspace(admin, "registry 2")["id"]
    assert new_model(admin, "by id", workspaceId=second, workspaceName="registry 1")["workspaceId"] == second
    assert new_model(admin, "by name", workspaceName="REGISTRY 1")["workspaceId"] == first
    answered(admin.post(f"{ALL}/by id/move", json={"destinationWorkspaceId": first, "modelName": "by id"}))
    assert get_model(admin, "by id")["workspaceId"] == first
    moved = answered(admin.patch(f"{ALL}/by id", json={"workspaceName": "registry 2"}))["model"]
    assert moved["workspaceId"] == second
    assert answered(admin.patch(f"{ALL}/by id", json={"workspaceId": first}))["model"]["workspaceId"] == first


def test_workspaces_that_take_no_models(admin: httpx.Client) -> None:
    closed = workspace(admin, "closed registry")["id"]
    answered(admin.post(f"/api/v1/workspaces/{closed}/archive"))
    new_model(admin, "homeless")
    archived = (400, f"workspace ({closed}) is archived and cannot add new models")
    assert error_of(admin.post(ALL, json={"name": "late", "workspaceId": closed})) == archived
    assert error_of(admin.post(f"{ALL}/homeless/move", json={"destinationWorkspaceId": closed})) == archived
    assert error_of(admin.post(ALL, json={"name": "late", "workspaceId": 0})) == (404, "workspace '0' not found")
    unknown = (404, "workspace 'nowhere' not found")
    assert error_of(admin.post(ALL, json={"name": "late", "workspaceName": "nowhere"})) == unknown
    assert error_of(admin.patch(f"{ALL}/homeless", json={"workspaceName": "nowhere"})) == unknown
    assert error_of(admin.post(f"{ALL}/homeless/move", json={}))[0] == 404
    assert admin.get(f"{ALL}/late").status_code == 404


def test_a_workspace_with_models_stays(admin: httpx.Client) -> None:
    made = workspace(admin, "kept by a model")["id"]
    new_model(admin, "keeper", workspaceId=made)
    refusal = (400, f"workspace ({made}) contains models; move or delete models first")
    assert error_of(admin.delete(f"/api/v1/workspaces/{made}")) == refusal
    answered(admin.delete(f"{ALL}/keeper"))
    answered(admin.delete(f"/api/v1/workspaces/{made}"))


def test_everybody_changes_and_only_owners_and_administrators_delete(admin: httpx.Client, user: httpx.Client) -> None:
    new_model(admin, "of admin")
    new_model(user, "of user")
    answered(user.patch(f"{ALL}/of admin", json={"notes": "by determined"}))
    answered(user.post(f"{ALL}/of admin/archive"))
    refusal = (403, "non-admin users may not delete other users' models")
    assert error_of(user.delete(f"{ALL}/of admin")) == refusal
    answered(user.delete(f"{ALL}/of user"))
    answered(admin.delete(f"{ALL}/of admin"))
    assert admin.get(f"{ALL}/of admin").status_code == 404


@pytest.fixture(scope="module")
def shelf(admin: httpx.Client, user: httpx.Client) -> int:
    """A workspace with models to find."""
    made: int = workspace(admin, "Shelf")["id"]
    new_model(admin, "shelf c", description="100% sure", labels=["red", "a,b"], workspaceId=made)
    new_model(user, "shelf_a", description="B side", labels=["red", "blue"], workspaceId=made)
    new_model(admin, "SHELF b", description="a side", labels=["green"], workspaceId=made)
    answered(admin.post(f"{ALL}/SHELF b/archive"))
    return made


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"shelf c", "shelf_a", "SHELF b"}),
    ({"name": "SHELF"}, {"shelf c", "shelf_a", "SHELF b"}),
    ({"name": "f_"}, {"shelf_a"}),
    ({"description": "SIDE"}, {"shelf_a", "SHELF b"}),
    ({"description": "0%"}, {"shelf c"}),
    ({"labels": ["red"]}, {"shelf c", "shelf_a"}),
    ({"labels": ["blue", "green"]}, {"shelf_a", "SHELF b"}),
    ({"labels": ["a"]}, set()),
    ({"labels": ["a,b"]}, {"shelf c"}),
    ({"archived": "true"}, {"SHELF b"}),
    ({"archived": "false"}, {"shelf c", "shelf_a"}),
    ({"users": ["determined"]}, {"shelf_a"}),
    ({"userIds": [1]}, {"shelf c", "SHELF b"}),
    ({"users": ["determined"], "userIds": [1]}, {"shelf c", "shelf_a", "SHELF b"}),
    ({"users": ["nobody"]}, set()),
    ({"id": 999999}, set()),
    ({"name": "shelf", "labels": ["red"], "archived": "true"}, set()),
]


@pytest.mark.parametrize(("query", "names"), FILTERS)
def test_filters(admin: httpx.Client, shelf: int, query: dict[str, Any], names: set[str]) -> None:
    assert set(listed(admin, workspaceIds=[shelf], **query)) == names
    assert set(listed(admin, workspaceNames=["shelf", "nowhere"], **query)) == names


def test_one_by_its_id(admin: httpx.Client, shelf: int) -> None:
    ident = get_model(admin, "shelf c")["id"]
    assert listed(admin, id=ident) == ["shelf c"]
    assert listed(admin, workspaceNames=["nowhere"]) == []


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("SORT_BY_UNSPECIFIED", "shelf c"),
        ("SORT_BY_NAME", "SHELF b"),
        ("SORT_BY_DESCRIPTION", "shelf c"),
        ("SORT_BY_CREATION_TIME", "shelf c"),
        ("SORT_BY_LAST_UPDATED_TIME", "shelf c"),
        ("SORT_BY_NUM_VERSIONS", "shelf c"),
        ("SORT_BY_WORKSPACE", "shelf c"),
    ],
)
def test_sorting(admin: httpx.Client, shelf: int, sort: str, first: str) -> None:
    ascending = listed(admin, workspaceIds=[shelf], sortBy=sort)
    assert ascending[0] == first
    assert listed(admin, workspaceIds=[shelf], sortBy=sort, orderBy="ORDER_BY_DESC") == ascending[::-1]


def test_pages(admin: httpx.Client, shelf: int) -> None:
    where: dict[str, Any] = {"workspaceIds": [shelf], "limit": 2}
    page = answered(admin.get(ALL, params={**where, "offset": -1}))
    assert page["pagination"] == {"offset": -1, "limit": 2, "startIndex": 2, "endIndex": 3, "total": 3}
    names = [name for offset in (0, 2) for name in listed(admin, **where, offset=offset)]
    assert names == listed(admin, workspaceIds=[shelf])
    assert error_of(admin.get(ALL, params={**where, "offset": 4})) == (400, "offset out of bounds")


def test_labels_by_popularity(admin: httpx.Client, shelf: int) -> None:
    path = "/api/v1/model/labels"
    assert answered(admin.get(path, params={"workspaceId": shelf}))["labels"] == ["red", "a,b", "blue", "green"]
    everywhere = answered(admin.get(path))["labels"]
    assert {"red", "a,b", "blue", "green"} <= set(everywhere)
    assert answered(admin.get(path, params={"workspaceId": 999999}))["labels"] == []


def test_what_is_changed_is_in_the_audit_log(admin: httpx.Client) -> None:
    new_model(admin, "audited", labels=["secret?"])
    (record,) = answered(admin.get("/api/v1/resolute/audit", params={"action": "POST /api/v1/models", "limit": 1}))[
        "records"
    ]
    assert record["action"] == "POST /api/v1/models"
    assert record["details"]["name"] == "audited"


def test_too_large_is_refused(admin: httpx.Client) -> None:
    assert admin.post(ALL, json={"name": "vast", "notes": "x" * (9 * 1024 * 1024)}).status_code in (400, 413)
