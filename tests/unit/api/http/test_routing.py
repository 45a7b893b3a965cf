"""The route table finds the most literal path, whatever the order of registration."""

from __future__ import annotations

import pytest

from services.api.access.route_permission import ANYBODY
from services.api.http.routing import MAX_ANONYMOUS_BODY_BYTES, MAX_BODY_BYTES, Route, RouteTable, shape_of

PATHS = [
    "/api/v1/users/{userId}",
    "/api/v1/users/setting",
    "/api/v1/users/{userId}/password",
    "/api/v1/users/setting/{key}/more",
    "/proxy/{service}/{path:path}",
    "/det/{path:path}",
    "/",
]

FINDS = [
    ("/api/v1/users/7", "/api/v1/users/{userId}", {"userId": "7"}),
    ("/api/v1/users/setting", "/api/v1/users/setting", {}),
    ("/api/v1/users/setting/password", "/api/v1/users/{userId}/password", {"userId": "setting"}),
    ("/api/v1/users/setting/x/more", "/api/v1/users/setting/{key}/more", {"key": "x"}),
    ("/api/v1/users/a%2Fb", "/api/v1/users/{userId}", {"userId": "a/b"}),
    ("/api/v1/users/%C3%A4%20", "/api/v1/users/{userId}", {"userId": "ä "}),
    ("/proxy/5.a/lab/tree", "/proxy/{service}/{path:path}", {"service": "5.a", "path": "lab/tree"}),
    ("/proxy/5.a/", "/proxy/{service}/{path:path}", {"service": "5.a", "path": ""}),
    ("/det/", "/det/{path:path}", {"path": ""}),
    ("/", "/", {}),
    ("/api/v1/users", None, None),
    ("/api/v1/users/", None, None),
    ("/api/v1/users/7/", None, None),
    ("/api/v1/users/7/nothing", None, None),
    ("", None, None),
]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("path", "target", "parameters"), FINDS)
def test_paths(order: int, path: str, target: str | None, parameters: dict[str, str] | None) -> None:
    table: RouteTable[str] = RouteTable()
    for registered in PATHS[::order]:
        table.add("GET", registered, registered)
    assert table.find("GET", path.encode()) == (None if target is None else (parameters, target))
    assert table.find("DELETE", path.encode()) is None


def test_methods_share_a_path_under_different_names() -> None:
    table: RouteTable[str] = RouteTable()
    table.add("GET", "/models/{modelName}", "get")
    table.add("PATCH", "/models/{model.name}", "patch")
    assert table.find("PATCH", b"/models/x") == ({"model.name": "x"}, "patch")
    assert table.find("GET", b"/models/x") == ({"modelName": "x"}, "get")


def test_two_routes_for_the_same_requests_are_a_mistake() -> None:
    table: RouteTable[str] = RouteTable()
    table.add("GET", "/models/{modelName}", "get")
    with pytest.raises(ValueError, match="registered twice"):
        table.add("GET", "/models/{id}", "again")
    with pytest.raises(ValueError, match="only the last"):
        table.add("GET", "/a/{rest:path}/b", "x")


def test_shapes_ignore_names() -> None:
    assert shape_of("/api/v1/trials/{trialId}/x") == shape_of("/api/v1/trials/{id}/x")
    assert shape_of("/api/v1/trials/{trialId}") != shape_of("/api/v1/trials/count")


async def nothing(_: object) -> None:
    return None


def test_strangers_may_send_less() -> None:
    assert Route(method="POST", path="/x", handler=nothing).body_limit == MAX_BODY_BYTES >= 130 * 1024 * 1024
    assert Route(method="POST", path="/x", handler=nothing, permission=ANYBODY).body_limit == MAX_ANONYMOUS_BODY_BYTES
    assert Route(method="POST", path="/x", handler=nothing, permission=ANYBODY, max_body_bytes=7).body_limit == 7
