"""Two administrators who change the same thing at once: one of them, or one after the other; never half of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import pytest

from tests.integration.api.users.test_groups import assignment, group
from tests.integration.api.users.test_users import created

ADMINISTRATORS = 6
_NONCE = count()

Send = Callable[[int], httpx.Response]


def at_once(*sends: Send) -> list[int]:
    """The statuses of requests of several administrators, who take turns with these."""
    with ThreadPoolExecutor(ADMINISTRATORS) as threads:
        replies = list(threads.map(lambda n: sends[n % len(sends)](n), range(ADMINISTRATORS)))
    assert all(reply.status_code < 500 for reply in replies), [reply.text for reply in replies]
    return sorted(reply.status_code for reply in replies)


def new_name(kind: str) -> str:
    return f"{kind} at once {next(_NONCE)}"


def made_groups(admin: httpx.Client) -> list[tuple[str, str]]:
    return [("PUT", f"groups/{group(admin, new_name('group'))}") for _ in range(ADMINISTRATORS)]


def made_workspaces(admin: httpx.Client) -> list[tuple[str, str]]:
    return [("PATCH", f"workspaces/{workspace(admin)}") for _ in range(ADMINISTRATORS)]


def made_projects(admin: httpx.Client) -> list[tuple[str, str]]:
    here = workspace(admin)
    posted = [post(admin, f"workspaces/{here}/projects", new_name("project")) for _ in range(ADMINISTRATORS)]
    return [("PATCH", f"projects/{each['project']['id']}") for each in posted]


def made_models(admin: httpx.Client) -> list[tuple[str, str]]:
    posted = [post(admin, "models", new_name("model")) for _ in range(ADMINISTRATORS)]
    return [("PATCH", f"models/{each['model']['id']}") for each in posted]


def post(admin: httpx.Client, path: str, name: str) -> Any:
    reply = admin.post(f"/api/v1/{path}", json={"name": name})
    assert reply.status_code == 200, reply.text
    return reply.json()


def workspace(admin: httpx.Client) -> int:
    return int(post(admin, "workspaces", new_name("workspace"))["workspace"]["id"])


@pytest.mark.parametrize("made", [made_groups, made_workspaces, made_projects, made_models])
def test_one_of_them_gets_the_name(admin: httpx.Client, made: Callable[[httpx.Client], list[tuple[str, str]]]) -> None:
    things, name = made(admin), new_name("wanted")

    def rename(number: int) -> httpx.Response:
        method, path = things[number]
        return admin.request(method, f"/api/v1/{path}", json={"name": name})

    assert at_once(rename) == [200] + [409] * (ADMINISTRATORS - 1)


def test_one_of_them_gets_the_username(admin: httpx.Client) -> None:
    users = [created(admin, f"once-{next(_NONCE)}")["id"] for _ in range(ADMINISTRATORS)]

    def rename(number: int) -> httpx.Response:
        return admin.patch(f"/api/v1/users/{users[number]}", json={"username": "wanted-once"})

    assert at_once(rename) == [200] + [409] * (ADMINISTRATORS - 1)


@pytest.mark.parametrize("path", ["groups", "workspaces", "models"])
def test_one_of_them_makes_it(admin: httpx.Client, path: str) -> None:
    name = new_name("made")
    assert at_once(lambda _: admin.post(f"/api/v1/{path}", json={"name": name})) == [200] + [409] * 5


def test_a_group_that_is_changed_and_deleted_is_deleted(admin: httpx.Client) -> None:
    """With its roles, whoever gives it one meanwhile."""
    for _ in range(5):
        ident, user = group(admin, new_name("doomed")), created(admin, f"once-{next(_NONCE)}")["id"]
        statuses = at_once(
            lambda _, ident=ident, user=user: admin.put(f"/api/v1/groups/{ident}", json={"addUsers": [user]}),
            lambda _, ident=ident: admin.post("/api/v1/roles/add-assignments", json=assignment(4, 1, groupId=ident)),
            lambda _, ident=ident: admin.delete(f"/api/v1/groups/{ident}"),
        )
        assert set(statuses) <= {200, 404, 409}
        assert admin.get(f"/api/v1/groups/{ident}").status_code == 404
        shown = admin.get("/api/v1/roles/workspace/1").json()
        assert ident not in [each["groupId"] for each in shown["groups"]]


def test_a_role_that_is_given_and_taken_is_there_once_or_not(admin: httpx.Client) -> None:
    user = created(admin, f"once-{next(_NONCE)}")["id"]
    body = assignment(4, 1, userId=user)
    for _ in range(5):
        statuses = at_once(
            lambda _: admin.post("/api/v1/roles/add-assignments", json=body),
            lambda _: admin.post("/api/v1/roles/remove-assignments", json=body),
        )
        assert set(statuses) <= {200, 404, 409}
        held = admin.get(f"/api/v1/roles/search/by-user/{user}").json()["roles"]
        assert [len(each["userRoleAssignments"]) for each in held] in ([], [1])


@pytest.fixture
def without_policies(admin: httpx.Client) -> Iterator[None]:
    yield
    assert admin.delete("/api/v1/config-policies/global/EXPERIMENT").status_code == 200


@pytest.mark.usefixtures("without_policies")
def test_policies_are_those_of_one_of_them(admin: httpx.Client) -> None:
    """Not the limit of one beside what another has fixed."""
    path = "/api/v1/config-policies/global/EXPERIMENT"

    def put(number: int) -> httpx.Response:
        text = f"invariant_config: {{max_restarts: {number}}}\nconstraints: {{resources: {{max_slots: {number + 1}}}}}"
        return admin.put(path, json={"workloadType": "EXPERIMENT", "configPolicies": text})

    for _ in range(3):
        assert at_once(put) == [200] * ADMINISTRATORS
        found = admin.get(path).json()["configPolicies"]
        restarts = found["invariant_config"]["max_restarts"]
        assert found["constraints"] == {"resources": {"max_slots": restarts + 1}}
        assert set(at_once(put, lambda _: admin.delete(path))) == {200}
        left = admin.get(path).json()["configPolicies"]
        assert left == {} or set(left) == {"invariant_config", "constraints"}


@pytest.mark.usefixtures("without_policies")
def test_a_policy_that_contradicts_the_global_one_is_never_left(admin: httpx.Client) -> None:
    """Whichever of the two comes first; of those who come at once as well."""
    here = workspace(admin)
    general, own = "/api/v1/config-policies/global/EXPERIMENT", f"/api/v1/config-policies/workspaces/{here}/EXPERIMENT"

    def put(path: str, policies: str) -> httpx.Response:
        return admin.put(path, json={"workloadType": "EXPERIMENT", "configPolicies": policies})

    limit, fixed = "constraints: {resources: {max_slots: 2}}", "invariant_config: {resources: {slots_per_trial: 3}}"
    assert put(general, limit).status_code == 200
    refused = put(own, fixed)
    assert (refused.status_code, "slots_per_trial (3) is greater than" in refused.text) == (400, True)
    assert admin.get(own).json() == {"configPolicies": {}}
    assert at_once(lambda _: put(own, fixed)) == [400] * ADMINISTRATORS
    assert admin.get(own).json() == {"configPolicies": {}}
