"""The REST interface described as OpenAPI 3.1, from the route table and the message types themselves.

Served as ``/api/v1/openapi.json`` and, for people, as one plain page at ``/docs/rest-api``.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from services.api.access.route_permission import ANYBODY
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.replies.silence import LINES_TYPE
from services.api.http.routing import Route
from services.api.wire.base import INT32_MAX, INT32_MIN

OPENAPI_PATH: Final = "/api/v1/openapi.json"
DOCS_PATH: Final = "/docs/rest-api"
_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)(?::path)?\}")
INTEGERS: Final = frozenset(
    {
        "experimentId",
        "experiment_id",
        "groupId",
        "id",
        "limitId",
        "modelVersionNum",
        "projectId",
        "runId",
        "shareId",
        "tokenId",
        "trialId",
        "userId",
        "workspaceId",
    }
)
"""Parameters of paths that are 32-bit integers wherever they occur; all others are text."""
_INT32: Final = {"type": "integer", "format": "int32", "minimum": INT32_MIN, "maximum": INT32_MAX}
_TEXT: Final = {"type": "string"}
_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "reason", "error"],
            "properties": {"code": {"type": "integer"}, "reason": _TEXT, "error": _TEXT},
        }
    },
}
_STREAM_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["grpcCode", "httpCode", "message", "httpStatus"],
            "properties": {
                "grpcCode": {"type": "integer"},
                "httpCode": {"type": "integer"},
                "message": _TEXT,
                "httpStatus": _TEXT,
            },
        }
    },
}
_PLAIN_ERROR: Final = {"type": "object", "required": ["message"], "properties": {"message": _TEXT}}

Schema = dict[str, Any]


def description_routes(routes: Sequence[Route], openapi_schema: Callable[[], Schema]) -> list[Route]:
    """The two routes that describe ``routes``, one by ``openapi_schema``. Public: they say nothing that the source code
    does not.

    What they answer is made for the first who asks, which few replicas are, and kept: it takes a tenth of a second, a
    third of the processor time that the api needs to start.
    """

    @cache
    def document() -> bytes:
        return msgspec.json.encode(openapi_schema())

    @cache
    def page() -> bytes:
        return docs_page(routes).encode()

    # In a thread, for others do not wait for it.
    async def openapi(_: Call[object, None, None]) -> RawResponse:
        return RawResponse(await asyncio.to_thread(document), media_type="application/json")

    async def docs(_: Call[object, None, None]) -> RawResponse:
        return RawResponse(await asyncio.to_thread(page), media_type="text/html; charset=utf-8")

    return [
        Route(method="GET", path=OPENAPI_PATH, handler=openapi, permission=ANYBODY),
        Route(method="GET", path=DOCS_PATH, handler=docs, permission=ANYBODY, raw=True),
    ]


def openapi_document(routes: Sequence[Route], *, title: str = "Resolute", version: str = "1") -> Schema:
    """The OpenAPI 3.1 document of ``routes``; schemas are named for their types."""
    types = [kind for route in routes for kind in (route.query, _body_of(route), route.response) if kind is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    for schema in (*schemas, *components.values()):
        _bound_integers(schema)
    components |= {"Error": _ERROR, "StreamError": _STREAM_ERROR, "PlainError": _PLAIN_ERROR}
    schema_of = {repr(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Schema] = {}
    for route in routes:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def docs_page(routes: Sequence[Route]) -> str:
    """A page that lists every route and needs nothing from anywhere else."""
    rows = "\n".join(
        f"<tr><td><b>{html.escape(route.method)}</b></td><td><code>{html.escape(route.path)}</code></td>"
        f"<td>{html.escape(_type_name(route.body))}</td><td>{html.escape(_type_name(route.response))}"
        f"{' (stream)' if route.stream else ''}</td><td>{html.escape(route.summary)}</td></tr>"
        for route in sorted(routes, key=lambda route: (route.path, route.method))
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Resolute REST API</title>"
        "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
        "td,th{padding:.25rem .75rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}</style>"
        f"<h1>Resolute REST API</h1><p>{len(routes)} routes. Machine-readable: "
        f'<a href="{OPENAPI_PATH}">{OPENAPI_PATH}</a>.</p>'
        f"<table><tr><th>Method<th>Path<th>Body<th>Reply<th></tr>\n{rows}\n</table></html>\n"
    )


def _operation(route: Route, schema_of: dict[str, Schema], components: dict[str, Schema]) -> Schema:
    content: Schema = {}
    if route.response is not None:
        schema = schema_of[repr(route.response)]
        content = {"content": {"application/json": {"schema": schema}}}
        if route.stream:
            content = {"content": {LINES_TYPE: {"schema": _line_of_stream(schema)}}}
    operation: Schema = {
        "operationId": f"{route.method.lower()}_{_identifier(route.path)}",
        "tags": [_noun(route.path)],
        "parameters": [*_path_parameters(route), *_query_parameters(route, schema_of, components)],
        "responses": {"200": {"description": "OK", **content}, "default": _refusal(route)},
    }
    if route.summary:
        operation["summary"] = route.summary
    if (body := _body_of(route)) is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": schema_of[repr(body)]}}}
    if route.permission.needs_token:
        operation["security"] = [{"bearer": []}]
    return operation


def _line_of_stream(schema: Schema) -> Schema:
    """What each line is: the next message, or the error that has ended the stream."""
    message = {"type": "object", "required": ["result"], "properties": {"result": schema}}
    return {
        "description": "newline-delimited JSON: this is one line of it; the last one may be an error",
        "oneOf": [message, {"$ref": _REF.format(name="StreamError")}],
    }


def _body_of(route: Route) -> Any:
    """What the body holds, also when the handler decodes it."""
    return route.body if route.described_body is None else route.described_body


def _refusal(route: Route) -> Schema:
    name = "StreamError" if route.stream else "PlainError" if route.raw else "Error"
    return {
        "description": "what is wrong, and the status says whose fault it is",
        "content": {"application/json": {"schema": {"$ref": _REF.format(name=name)}}},
    }


def _bound_integers(schema: Any) -> None:
    """Say in place what decoders hold of a plain integer: that it has 32 bits."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and "enum" not in schema:
            schema.update({**_INT32, **schema})
        for part in schema.values():
            _bound_integers(part)
    elif isinstance(schema, list):
        for part in schema:
            _bound_integers(part)


def _path_parameters(route: Route) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _INT32 if name in INTEGERS else _TEXT}
        for name in _PARAMETER.findall(route.path)
    ]


def _query_parameters(route: Route, schema_of: dict[str, Schema], components: dict[str, Schema]) -> list[Schema]:
    if route.query is None:
        return []
    return [
        {"name": name, "in": "query", "schema": schema}
        for name, schema in _query_fields(schema_of[repr(route.query)], components)
    ]


def _query_fields(schema: Schema, components: dict[str, Schema], prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """The parameters of a query struct; fields of a struct inside of it have a dot in their names."""
    struct = _struct(schema, components)
    assert struct is not None
    for name, field in struct.get("properties", {}).items():
        if _struct(field, components) is None:
            yield prefix + name, field
        else:
            yield from _query_fields(field, components, f"{prefix}{name}.")


def _struct(schema: Schema, components: dict[str, Schema]) -> Schema | None:
    """The object that a schema means, be it or null; None for anything else."""
    for one in (schema, *schema.get("anyOf", ())):
        found = components.get(one.get("$ref", "").rpartition("/")[2])
        if found is not None and found.get("type") == "object":
            return found
    return None


def _identifier(path: str) -> str:
    return re.sub(r"\W+", "_", path.removeprefix("/api/v1/")).strip("_")


def _noun(path: str) -> str:
    return path.removeprefix("/api/v1").strip("/").partition("/")[0] or "root"


def _type_name(kind: Any) -> str:
    return "" if kind is None else getattr(kind, "__name__", str(kind))
