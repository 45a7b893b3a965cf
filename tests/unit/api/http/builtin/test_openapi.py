"""The description of the interface is complete and consistent in itself."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from services.api.access.route_permission import ANYBODY
from services.api.http.builtin.openapi import docs_page, openapi_document
from services.api.http.routing import Route
from tests.unit.api.http.shapes import Branch, Everything, Search


async def nothing(_: object) -> None:
    return None


ROUTES = [
    Route(method="GET", path="/api/v1/things", handler=nothing, query=Search, response=Everything, summary="<list>"),
    Route(method="POST", path="/api/v1/things/{id}", handler=nothing, body=Everything, response=Branch),
    Route(method="POST", path="/api/v1/password", handler=nothing, body=str, permission=ANYBODY),
    Route(method="GET", path="/api/v1/logs", handler=nothing, response=Branch, stream=True),
    Route(method="GET", path="/files/{id}/{path:path}", handler=nothing, raw=True),
    Route(method="PUT", path="/api/v1/branches", handler=nothing, body=list[Branch]),
]


def test_every_route_and_every_reference_is_there() -> None:
    document = openapi_document(ROUTES)
    operations = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    assert sorted(operations) == sorted((route.method, route.path.replace(":path", "")) for route in ROUTES)
    text = msgspec.json.encode(document).decode()
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references <= set(document["components"]["schemas"])
    assert references >= {"Everything", "Branch", "State", "Filter"}


def test_parameters_bodies_and_replies() -> None:
    paths: dict[str, Any] = openapi_document(ROUTES)["paths"]
    listing = paths["/api/v1/things"]["get"]
    assert {parameter["name"] for parameter in listing["parameters"]} >= {"limit", "userIds", "orderBy"}
    assert listing["security"] == [{"bearer": []}]
    posting = paths["/api/v1/things/{id}"]["post"]
    assert [parameter["name"] for parameter in posting["parameters"]] == ["id"]
    assert posting["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Everything"
    }
    assert "security" not in paths["/api/v1/password"]["post"]
    line = paths["/api/v1/logs"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert line["properties"]["result"] == {"$ref": "#/components/schemas/Branch"}


def test_the_page_lists_all_routes_and_loads_nothing() -> None:
    page = docs_page(ROUTES)
    assert all(route.path in page for route in ROUTES)
    assert "&lt;list&gt;" in page
    assert not re.search(r"(src|href)=.?https?://", page)
