"""The description of the whole interface leaves nothing unsaid, and clients generated from it stay as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from services.api.http.builtin.openapi import openapi_document
from services.api.http.description.contents import CONTENTS
from services.api.http.description.names import NAMES, USE_INSTEAD
from services.api.http.description.refusals import MAKES_A_NAME
from services.api.http.description.tags import TAGS
from services.api.http.replies.silence import LINES_TYPE
from services.api.http.routing import shape_of
from services.api.routes.table import all_routes

ROUTES = all_routes()


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(ROUTES)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def fields(part: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of a field and, for one that may be null, of its choices."""
    if isinstance(part, dict):
        if name:
            yield name, part
            for choice in part.get("anyOf", ()):
                yield name, choice
        for key, inner in part.items():
            if key == "properties":
                for field, schema in inner.items():
                    yield from fields(schema, field)
            else:
                yield from fields(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from fields(inner)


def test_every_operation_says_what_it_is(document: dict[str, Any]) -> None:
    incomplete = [
        call
        for call, operation in operations(document)
        if not operation.get("summary")
        or operation["summary"].endswith(".")
        or not re.fullmatch(r"[a-z][A-Za-z0-9]+", operation["operationId"])
        or set(operation["tags"]) - set(TAGS)
    ]
    assert incomplete == []
    names = Counter(operation["operationId"] for _, operation in operations(document))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_paths_are_answered_by_the_same_requests(document: dict[str, Any]) -> None:
    assert len({shape_of(path) for path in document["paths"]}) == len(document["paths"])
    assert len(list(operations(document))) == len(ROUTES)
    for call, operation in operations(document):
        of_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert of_path == re.findall(r"\{(\w+)\}", call)


def test_every_operation_says_what_it_answers_and_how_it_refuses(document: dict[str, Any]) -> None:
    responses = document["components"]["responses"]
    for call, operation in operations(document):
        (success,) = [status for status in operation["responses"] if status[0] in "123"]
        answer = operation["responses"][success]
        assert success in ("101", "204", "301", "303") or all(each["schema"] for each in answer["content"].values()), (
            call
        )
        refused = {
            status: each["$ref"].rpartition("/")[2]
            for status, each in operation["responses"].items()
            if status != success
        }
        assert {"503", "default"} <= set(refused), call
        assert set(refused.values()) <= set(responses), call
        if operation.get("security") == [{"bearer": []}, {"cookie": []}]:
            assert {"401", "403"} <= set(refused), call
        if "{" in call:
            assert {"400", "404"} <= set(refused), call


def test_streams_say_what_their_lines_are(document: dict[str, Any]) -> None:
    streams = {f"{route.method} {route.path}" for route in ROUTES if route.stream}
    found = {
        call for call, each in operations(document) if LINES_TYPE in each["responses"].get("200", {}).get("content", {})
    }
    assert found == streams


def test_every_schema_is_one_and_every_reference_leads_to_one(document: dict[str, Any]) -> None:
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for section, name in re.findall(r"'#/components/(\w+)/([\w.-]+)'", repr(document)):
        assert name in document["components"][section]


def test_moments_are_called_so(document: dict[str, Any]) -> None:
    is_moment = re.compile(r".*(Time|At|[a-z]Timestamp)|time|timestamp|expiry|since|estimatedStart|nextPeriod")
    not_called = [
        name
        for name, schema in fields(document["components"]["schemas"])
        if is_moment.fullmatch(name) and schema.get("type") == "string" and schema.get("format") != "date-time"
    ]
    assert not_called == []


def test_replies_have_all_fields_and_requests_need_not(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert {"id", "state", "endTime", "labels"} <= set(schemas["Experiment"]["required"])
    assert "isReady" not in schemas["Allocation"]["required"], "left out while nobody knows"
    assert "required" not in schemas["NoteInput"]
    assert schemas["Note"]["required"] == ["name", "contents"]


def test_enums_are_of_texts_and_free_form_is_any_json(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["OrderBy"]["type"] == "string"
    assert schemas["Trial"]["properties"]["hparams"]["additionalProperties"] == {
        "$ref": "#/components/schemas/JsonValue"
    }
    assert [name for name, schema in fields(schemas) if schema == {} or schema == {"type": "object"}] == []


def test_tables_are_about_routes_that_are_there() -> None:
    calls = {f"{route.method} {route.path}" for route in ROUTES}
    for table in (NAMES, USE_INSTEAD, CONTENTS, MAKES_A_NAME):
        assert set(table) <= calls


def test_deprecated_operations_say_what_to_do_instead(document: dict[str, Any]) -> None:
    by_name = {operation["operationId"]: operation for _, operation in operations(document)}
    deprecated = [each for each in by_name.values() if each.get("deprecated")]
    assert len(deprecated) == len(USE_INSTEAD)
    for each in deprecated:
        for name in re.findall(r"Use `(\w+)`", each["description"]):
            assert not by_name[name].get("deprecated")
