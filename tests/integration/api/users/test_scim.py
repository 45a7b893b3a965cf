"""SCIM over HTTP, as providers of identities speak it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.api.routes.users.scim import ROUTES
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.integration.api.world import CLUSTER, World
from tests.scenarios.scim_requests import CHANGES, REFUSED, Change, by_entra, described

ENABLED = "scim: {enabled: true, auth: {type: basic, username: okta, password: very-secret-too}}\n"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "scim.yaml"
    path.write_text(CLUSTER + ENABLED)
    with world.api("scim", cluster_config=str(path)) as api:
        yield api


@pytest.fixture(scope="module")
def scim(api: ApiProcess) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"{api.url}/scim/v2", auth=("okta", "very-secret-too"), timeout=30, verify=NO_TLS
    ) as client:
        yield client


def made(scim: httpx.Client, user_name: str, **more: Any) -> dict[str, Any]:
    reply = scim.post("/Users", json=described(user_name, **more))
    assert reply.status_code == 201, reply.text
    found: dict[str, Any] = reply.json()
    return found


def refused(reply: httpx.Response, status: int, kind: str | None = None) -> str:
    """The text of a refusal, which has the form of SCIM."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/scim+json"
    body = reply.json()
    assert (body["schemas"], body["status"]) == ([ERROR], str(status))
    assert kind is None or body.get("scimType") == kind, body
    return str(body["detail"])


def user_of(admin: httpx.Client, username: str) -> dict[str, Any]:
    found: dict[str, Any] = admin.get(f"/api/v1/users/{username}/by-username").json()["user"]
    return found


def test_a_user_is_made_found_and_changed(scim: httpx.Client, admin: httpx.Client) -> None:
    reply = scim.post("/Users", json=described("ann"))
    user = reply.json()
    assert reply.status_code == 201
    assert reply.headers["location"] == user["meta"]["location"] == str(scim.base_url.join(f"Users/{user['id']}"))
    assert {key: user[key] for key in ("userName", "externalId", "active", "displayName", "name")} == {
        "userName": "ann",
        "externalId": "00uann",
        "active": True,
        "displayName": "Ann Other ann",
        "name": {"givenName": "Ann", "familyName": "Other"},
    }
    assert "password" not in reply.text
    assert scim.get(f"/Users/{user['id']}").json() == user
    here = user_of(admin, "ann")
    assert (here["remote"], here["active"], here["displayName"]) == (True, True, "Ann Other ann")
    changed = described("ann", displayName="A. O.", name={"familyName": "O."}, emails=[])
    replaced = scim.put(f"/Users/{user['id']}", json=changed).json()
    assert (replaced["displayName"], replaced["name"], "emails" in replaced) == ("A. O.", {"familyName": "O."}, False)
    assert user_of(admin, "ann")["displayName"] == "A. O."
    renamed = scim.put(f"/Users/{user['id']}", json=described("ann.other")).json()
    assert (renamed["userName"], renamed["id"]) == ("ann.other", user["id"])
    assert user_of(admin, "ann.other")["id"] == here["id"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_changes_as_providers_send_them(scim: httpx.Client, change: Change) -> None:
    name = f"patched-{CHANGES.index(change)}"
    user = made(scim, name)
    reply = scim.patch(f"/Users/{user['id']}", json={"schemas": ["x"], "Operations": change.operations})
    assert reply.status_code == 200, reply.text
    text = json.dumps(change.then).replace('"*"', json.dumps(f"{name}@example.com"))
    expected = {key: value for key, value in {**user, **json.loads(text)}.items() if value is not None}
    assert {**reply.json(), "meta": 0} == {**expected, "meta": 0}
    assert scim.get(f"/Users/{user['id']}").json() == reply.json()


@pytest.mark.parametrize(("name", "body", "kind"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_cannot_be_done_is_refused_and_changes_nothing(
    scim: httpx.Client, name: str, body: dict[str, Any], kind: str | None
) -> None:
    user = made(scim, f"refused-{[each[0] for each in REFUSED].index(name)}")
    refused(scim.patch(f"/Users/{user['id']}", content=json.dumps(body)), 400, kind)
    assert scim.get(f"/Users/{user['id']}").json() == user


def test_all_operations_happen_or_none(scim: httpx.Client) -> None:
    user = made(scim, "whole")
    operations = [
        {"op": "replace", "path": "displayName", "value": "Changed"},
        {"op": "replace", "path": "nonsense", "value": 1},
    ]
    refused(scim.patch(f"/Users/{user['id']}", json={"Operations": operations}), 400, "invalidPath")
    assert scim.get(f"/Users/{user['id']}").json() == user


def test_a_namesake_and_letters_of_any_language_are_no_obstacle(scim: httpx.Client, admin: httpx.Client) -> None:
    made(scim, "john.1", displayName="John Smith")
    second = made(scim, "john.2", displayName="john smith")
    assert second["displayName"] == "john smith"
    assert user_of(admin, "john.2")["displayName"] == ""
    reply = scim.post("/Users", json=by_entra("ben"))
    assert (reply.status_code, reply.json()["displayName"]) == (201, "Bén Ötker")
    assert user_of(admin, "ben")["displayName"] == ""


def test_deactivation_ends_what_the_user_holds(scim: httpx.Client, admin: httpx.Client, api: ApiProcess) -> None:
    user = made(scim, "leaver")
    user_id = user_of(admin, "leaver")["id"]
    token = admin.post("/api/v1/tokens", json={"userId": user_id, "lifespan": "1h"}).json()["token"]
    with httpx.Client(base_url=api.url, headers={"Authorization": f"Bearer {token}"}) as leaver:
        assert leaver.get("/api/v1/me").status_code == 200
        gone = {"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}
        assert scim.patch(f"/Users/{user['id']}", json=gone).json()["active"] is False
        assert leaver.get("/api/v1/me").status_code == 401
    assert user_of(admin, "leaver")["active"] is False
    back = {"Operations": [{"op": "replace", "value": {"active": True}}]}
    assert scim.patch(f"/Users/{user['id']}", json=back).json()["active"] is True
    assert user_of(admin, "leaver")["active"] is True


def test_who_is_deleted_is_deactivated_and_may_come_back(scim: httpx.Client, admin: httpx.Client) -> None:
    user = made(scim, "comes.back")
    before = user_of(admin, "comes.back")
    assert scim.delete(f"/Users/{user['id']}").status_code == 204
    refused(scim.get(f"/Users/{user['id']}"), 404)
    refused(scim.delete(f"/Users/{user['id']}"), 404)
    assert user_of(admin, "comes.back")["active"] is False
    again = made(scim, "comes.back")
    assert again["id"] != user["id"]
    assert {**user_of(admin, "comes.back"), "modifiedAt": 0} == {**before, "modifiedAt": 0}


def test_a_remote_user_is_taken_over_and_an_account_of_here_is_not(scim: httpx.Client, admin: httpx.Client) -> None:
    remote = {"user": {"username": "was.remote", "active": True, "remote": True}}
    assert admin.post("/api/v1/users", json=remote).status_code == 200
    assert scim.get("/Users", params={"filter": 'userName eq "was.remote"'}).json()["totalResults"] == 0
    made(scim, "was.remote")
    refused(scim.post("/Users", json=described("was.remote")), 409, "uniqueness")
    refused(scim.post("/Users", json=described("Was.Remote")), 409, "uniqueness")
    before = user_of(admin, "admin")
    refused(scim.post("/Users", json=described("admin", active=False)), 409, "uniqueness")
    assert user_of(admin, "admin") == before
    other = made(scim, "renames")
    refused(scim.put(f"/Users/{other['id']}", json=described("was.remote")), 409, "uniqueness")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        "[]",
        "null",
        "{",
        '"x"',
        '{"userName": ""}',
        '{"userName": "x"}',
        '{"userName": {"a": 1}}',
        '{"userName": "determined"}',
        '{"userName": "n\\u00e4me"}',
        '{"userName": "fine", "active": "perhaps"}',
        '{"userName": "fine", "emails": [{"type": "work"}]}',
        '{"userName": "fine", "name": []}',
        '{"userName": "nul\\u0000"}',
        "[" * 5000,
    ],
)
def test_what_is_no_user_is_refused(scim: httpx.Client, body: str) -> None:
    status = 409 if "determined" in body else 400
    refused(scim.post("/Users", content=body), status)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(
    ["active", "name", "name.givenName", "emails", 'emails[type eq "work"].value', "displayName", "members", ""]
) | st.text(max_size=8)
OPERATIONS = st.lists(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "remove", "Add"]), "path": PATHS, "value": JSON}),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=OPERATIONS, whole=st.dictionaries(st.sampled_from(["userName", "name", "emails", "active"]), JSON))
def test_no_body_is_an_error_of_ours(scim: httpx.Client, operations: list[Any], whole: dict[str, Any]) -> None:
    user = scim.get("/Users", params={"filter": 'userName eq "fuzzed"'}).json()["Resources"]
    user_id = user[0]["id"] if user else made(scim, "fuzzed")["id"]
    group = scim.get("/Groups", params={"filter": 'displayName eq "fuzzed"'}).json()["Resources"]
    group_id = group[0]["id"] if group else scim.post("/Groups", json={"displayName": "fuzzed"}).json()["id"]
    replies = [
        scim.patch(f"/Users/{user_id}", content=json.dumps({"Operations": operations})),
        scim.patch(f"/Groups/{group_id}", content=json.dumps({"Operations": operations})),
        scim.put(f"/Users/{user_id}", content=json.dumps({"userName": "fuzzed", **whole})),
    ]
    assert [reply.status_code for reply in replies if reply.status_code >= 500] == []


def test_lists_come_in_pages(scim: httpx.Client) -> None:
    for number in range(3):
        made(scim, f"paged-{number}", externalId="of-pages")
    found = 'externalId eq "of-pages"'

    def names(**query: Any) -> tuple[int, int, int, list[str]]:
        body = scim.get("/Users", params={"filter": found, **query}).json()
        listed = [each["userName"] for each in body["Resources"]]
        return body["totalResults"], body["startIndex"], body["itemsPerPage"], listed

    assert names() == (3, 1, 3, ["paged-0", "paged-1", "paged-2"])
    assert names(startIndex=2, count=1) == (3, 2, 1, ["paged-1"])
    assert names(startIndex=9) == (3, 9, 0, [])
    assert names(startIndex=-5, count=2) == (3, 1, 2, ["paged-0", "paged-1"])
    assert names(count=0) == (3, 1, 0, [])
    assert names(count=-1) == (3, 1, 0, [])
    assert names(startIndex="9" * 40)[3] == []
    refused(scim.get("/Users", params={"count": "many"}), 400, "invalidValue")
    refused(scim.get("/Users", params={"filter": 'shoeSize eq "9"'}), 400, "invalidFilter")
    refused(scim.get("/Groups", params={"filter": 'userName eq "9"'}), 400, "invalidFilter")
    assert scim.get("/Users", params={"filter": 'USERNAME Eq "PAGED-1"'}).json()["totalResults"] == 1


def test_a_group_has_the_members_that_the_provider_says(scim: httpx.Client, admin: httpx.Client) -> None:
    ann, ben, eve = (made(scim, f"member-{name}")["id"] for name in ("ann", "ben", "eve"))
    reply = scim.post(
        "/Groups", json={"displayName": "readers", "externalId": "g-1", "members": [{"value": ann, "display": "Ann"}]}
    )
    assert reply.status_code == 201, reply.text
    group = reply.json()
    path = f"/Groups/{group['id']}"
    local = {"addUsers": [2]}
    assert admin.put(f"/api/v1/groups/{group['id']}", json=local).status_code == 200

    def members(*operations: dict[str, Any]) -> list[str]:
        changed = scim.patch(path, json={"Operations": list(operations)})
        assert changed.status_code == 200, changed.text
        assert scim.get(path).json() == changed.json()
        return [each["value"] for each in changed.json()["members"]]

    assert members({"op": "Add", "path": "members", "value": [{"value": ben}, {"value": ann}]}) == [ann, ben]
    assert members({"op": "remove", "path": f'members[value eq "{ann}"]'}) == [ben]
    assert members({"op": "Remove", "path": "members", "value": [{"value": ben}]}) == []
    assert members({"op": "replace", "path": "members", "value": [{"value": eve}, {"value": ann}]}) == [ann, eve]
    assert members({"op": "remove", "path": "members", "value": []}) == [ann, eve]
    assert members({"op": "replace", "value": {"id": group["id"], "displayName": "writers"}}) == [ann, eve]
    assert members({"op": "add", "value": {"members": [{"value": ben}]}}) == [ann, ben, eve]
    assert members({"op": "remove", "path": "members"}) == []
    refused(
        scim.patch(path, json={"Operations": [{"op": "add", "path": "members", "value": [{"value": "nobody"}]}]}),
        400,
        "invalidValue",
    )
    replaced = scim.put(path, json={"displayName": "writers", "members": [{"value": ben}]}).json()
    assert [each["value"] for each in replaced["members"]] == [ben]
    here = admin.get(f"/api/v1/groups/{group['id']}").json()["group"]
    assert (here["name"], [user["username"] for user in here["users"]]) == ("writers", ["determined", "member-ben"])
    assert scim.delete(path).status_code == 204
    refused(scim.get(path), 404)


def test_groups_are_found_by_their_name(scim: httpx.Client) -> None:
    first = scim.post("/Groups", json={"displayName": "finders", "members": []}).json()
    found = scim.get("/Groups", params={"filter": 'displayName eq "Finders"', "excludedAttributes": "members"}).json()
    assert [each["id"] for each in found["Resources"]] == [first["id"]]
    assert "members" not in found["Resources"][0]
    assert scim.get("/Groups", params={"filter": f'id eq "{first["id"]}"'}).json()["totalResults"] == 1
    assert scim.get("/Groups", params={"filter": 'id eq "x"'}).json()["totalResults"] == 0
    refused(scim.post("/Groups", json={"displayName": "finders"}), 409, "uniqueness")
    refused(scim.post("/Groups", json={"displayName": "1DeterminedPersonalGroup"}), 400, "invalidValue")
    refused(scim.post("/Groups", json={"displayName": " "}), 400, "invalidValue")
    for ident in ("1", "x", "9" * 30, "%00", "٣"):  # the first is the group of one user
        assert scim.get(f"/Groups/{ident}").status_code in (400, 404), ident
        assert scim.delete(f"/Groups/{ident}").status_code in (400, 404), ident


def test_what_it_can_do_is_to_be_found(scim: httpx.Client) -> None:
    config = scim.get("/ServiceProviderConfig").json()
    assert config["patch"]["supported"] is True
    assert [each["type"] for each in config["authenticationSchemes"]] == ["httpbasic"]
    kinds = scim.get("/ResourceTypes").json()["Resources"]
    assert [each["endpoint"] for each in kinds] == ["/Users", "/Groups"]
    for kind in kinds:
        assert scim.get(f"/ResourceTypes/{kind['id']}").json() == kind
        schema = scim.get(f"/Schemas/{kind['schema']}").json()
        assert schema["id"] == kind["schema"]
        assert schema in scim.get("/Schemas").json()["Resources"]
    refused(scim.get("/Schemas/urn:nothing"), 404)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_nobody_calls_without_a_password(api: ApiProcess, route: Any) -> None:
    reply = httpx.request(route.method, f"{api.url}{route.path.replace('{id}', '1')}", verify=NO_TLS)
    refused(reply, 401)
    assert reply.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    "authorization",
    [
        "Basic b2t0YTp3cm9uZw==",  # okta:wrong
        "Basic YWRtaW46",  # admin:, who may log in with that
        "Basic b2t0YQ==",  # okta
        "Basic ???",
        "Basic",
        "Bearer very-secret-too",
    ],
)
def test_nobody_calls_with_another_password(api: ApiProcess, authorization: str) -> None:
    refused(httpx.get(f"{api.url}/scim/v2/Users", headers={"Authorization": authorization}, verify=NO_TLS), 401)


def test_a_token_of_a_user_is_worth_nothing_here(admin: httpx.Client) -> None:
    refused(admin.get("/scim/v2/Users"), 401)


def test_changes_are_in_the_audit_log(scim: httpx.Client, admin: httpx.Client) -> None:
    user = made(scim, "audited")
    scim.patch(f"/Users/{user['id']}", json={"Operations": [{"op": "replace", "path": "active", "value": False}]})
    group = scim.post("/Groups", json={"displayName": "audited", "members": [{"value": user["id"]}]}).json()
    refused(scim.patch(f"/Users/{user['id']}", json={}), 400)
    scim.delete(f"/Groups/{group['id']}")
    records = admin.get("/api/v1/resolute/audit", params={"limit": 4}).json()["records"]
    seen = [(each["action"], each["username"]) for each in records][::-1]
    assert seen == [
        ("POST /scim/v2/Users", "scim:okta"),
        ("PATCH /scim/v2/Users/{id}", "scim:okta"),
        ("POST /scim/v2/Groups", "scim:okta"),
        ("DELETE /scim/v2/Groups/{id}", "scim:okta"),
    ]
    # What is announced to subscribers, whose caches of rights would be wrong without it.
    of_group = [(each["what"], each["id"]) for each in records[1]["changed"] if each["entity"] == "group"]
    assert of_group == [("created", group["id"]), ("members", group["id"])]
    assert "1mz050nq" not in json.dumps(records)


def test_the_password_is_not_shown(admin: httpx.Client) -> None:
    shown = admin.get("/api/v1/master/config").json()["config"]["scim"]
    assert shown == {"enabled": True, "auth": {"type": "basic", "username": "okta", "password": "********"}}


def test_without_the_setting_there_is_nothing(world: World) -> None:
    with world.api("without-scim") as api:
        for route in ROUTES:
            path = route.path.replace("{id}", "1")
            reply = httpx.request(route.method, f"{api.url}{path}", verify=NO_TLS)
            assert (reply.status_code, reply.json()) == (404, {"message": f"api not found: {route.method} {path}"})
