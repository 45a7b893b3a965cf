"""The description of the interface is complete and consistent in itself."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any, cast

import msgspec
import pytest

from services.api.access.route_permission import ANYBODY
from services.api.http.builtin.openapi import description_routes, openapi_document
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
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
    Route(method="POST", path="/lines", handler=nothing, body=bytes, described_body=list[Branch], raw=True),
]


def test_every_route_and_every_reference_is_there() -> None:
    document = openapi_document(ROUTES)
    operations = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    assert sorted(operations) == sorted((route.method, route.path.replace(":path", "")) for route in ROUTES)
    text = msgspec.json.encode(document).decode()
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references <= set(document["components"]["schemas"])
    assert references >= {"Everything", "Branch", "State"}


def test_parameters_bodies_and_replies() -> None:
    paths: dict[str, Any] = openapi_document(ROUTES)["paths"]
    listing = paths["/api/v1/things"]["get"]
    assert {parameter["name"] for parameter in listing["parameters"]} >= {"limit", "userIds", "orderBy"}
    assert listing["security"] == [{"bearer": []}, {"cookie": []}]
    posting = paths["/api/v1/things/{id}"]["post"]
    assert [parameter["name"] for parameter in posting["parameters"]] == ["id"]
    assert posting["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/EverythingInput"
    }
    assert "security" not in paths["/api/v1/password"]["post"]


def test_paths_that_differ_only_in_names_are_one() -> None:
    routes = [
        Route(method="GET", path="/api/v1/things/{id}/parts/{partId}", handler=nothing, response=Branch),
        Route(method="POST", path="/api/v1/things/{thingId}/parts/{id}", handler=nothing, query=Search),
        Route(method="GET", path="/api/v1/things/{thingId}", handler=nothing, response=Branch),
    ]
    paths: dict[str, Any] = openapi_document(routes)["paths"]
    assert {path: list(methods) for path, methods in paths.items()} == {
        "/api/v1/things/{id}/parts/{partId}": ["get", "post"],
        "/api/v1/things/{thingId}": ["get"],
    }
    parameters = paths["/api/v1/things/{id}/parts/{partId}"]["post"]["parameters"]
    of_path = [(one["name"], one["schema"]["type"]) for one in parameters if one["in"] == "path"]
    assert of_path == [("id", "string"), ("partId", "integer")], "by position, each with the type it had"


def test_what_decoders_hold_of_numbers_is_said() -> None:
    document = openapi_document(ROUTES)
    (ident,) = document["paths"]["/api/v1/things/{id}"]["post"]["parameters"]
    fields = document["components"]["schemas"]["Everything"]["properties"]
    for schema in (ident["schema"], fields["trialId"]):
        assert (schema["type"], schema["minimum"], schema["maximum"]) == ("integer", -(2**31), 2**31 - 1)
    assert [one["schema"]["type"] for one in document["paths"]["/files/{id}/{path}"]["get"]["parameters"]] == [
        "integer",
        "string",
    ]


def test_fields_inside_of_a_query_have_dots_in_their_names() -> None:
    names = {one["name"] for one in openapi_document(ROUTES)["paths"]["/api/v1/things"]["get"]["parameters"]}
    assert {"experimentIdFilter.incl", "experimentIdFilter.gt"} <= names
    assert "experimentIdFilter" not in names


def test_refusals_and_bodies_that_handlers_decode_are_described() -> None:
    document = openapi_document(ROUTES)
    paths: dict[str, Any] = document["paths"]

    def refusal(path: str, method: str) -> str:
        named = str(paths[path][method]["responses"]["default"]["$ref"]).rpartition("/")[2]
        (content,) = document["components"]["responses"][named]["content"].values()
        return str(content["schema"]["$ref"]).rpartition("/")[2]

    assert refusal("/api/v1/things", "get") == "Error"
    assert refusal("/api/v1/logs", "get") == "StreamError"
    assert refusal("/lines", "post") == "PlainError"
    lines = paths["/lines"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert lines == {"type": "array", "items": {"$ref": "#/components/schemas/BranchInput"}}


def test_streams_are_described_line_by_line() -> None:
    described = openapi_document(ROUTES)["paths"]["/api/v1/logs"]["get"]["responses"]["200"]["content"]
    message, error = described["application/x-ndjson"]["schema"]["oneOf"]
    assert (list(described), message["required"]) == (["application/x-ndjson"], ["result"])
    assert message["properties"]["result"] == {"$ref": "#/components/schemas/Branch"}
    assert error["$ref"].endswith("/StreamError")


async def test_the_page_is_of_files_of_ours_under_a_strict_policy() -> None:
    routes = {route.path: route for route in description_routes(dict)}
    for path in ("/docs", "/docs/rest-api", "/docs/reference.js", "/docs/reference.css"):
        reply = await routes[path].handler(cast(Call[Any, Any, Any], None))
        assert isinstance(reply, RawResponse)
        assert isinstance(reply.content, bytes)
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        text = reply.content.decode()
        assert "innerHTML" not in text
        assert not re.search(r"""(src|href|url|fetch)\W{1,3}(https?:)?//""", text), "it loads from elsewhere"
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=\"", text), "the policy refuses this"
        for asked in re.findall(r'(?:src|href)="(/docs/[^"]+)"', text):
            assert asked in routes


async def test_the_document_is_made_for_the_first_who_asks_and_kept() -> None:
    made: list[dict[str, Any]] = []

    def document() -> dict[str, Any]:
        made.append({"openapi": "3.1.0"})
        return made[-1]

    openapi, *_ = description_routes(document)
    assert made == []
    for _ in range(2):
        reply = await openapi.handler(cast(Call[Any, Any, Any], None))
        assert isinstance(reply, RawResponse)
        assert reply.content == b'{"openapi":"3.1.0"}'
    assert len(made) == 1


async def test_all_who_ask_for_the_document_at_once_wait_for_the_same() -> None:
    making, may_end = threading.Event(), threading.Event()
    made: list[dict[str, Any]] = []

    def document() -> dict[str, Any]:
        made.append({"openapi": "3.1.0"})
        making.set()
        assert may_end.wait(60)
        return made[-1]

    openapi, *_ = description_routes(document)
    first, *others = [asyncio.ensure_future(openapi.handler(cast(Call[Any, Any, Any], None))) for _ in range(6)]
    assert await asyncio.to_thread(making.wait, 60)
    first.cancel()
    may_end.set()
    replies = await asyncio.gather(*others)
    assert [cast(RawResponse, reply).content for reply in replies] == [b'{"openapi":"3.1.0"}'] * 5
    assert len(made) == 1


async def test_a_document_that_could_not_be_made_is_made_for_the_next_who_asks() -> None:
    failures = [ImportError("a module that was replaced")]

    def document() -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return {"openapi": "3.1.0"}

    openapi, *_ = description_routes(document)
    with pytest.raises(ImportError):
        await openapi.handler(cast(Call[Any, Any, Any], None))
    reply = await openapi.handler(cast(Call[Any, Any, Any], None))
    assert isinstance(reply, RawResponse)
    assert reply.content == b'{"openapi":"3.1.0"}'
