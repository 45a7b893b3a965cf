"""The REST interface described as OpenAPI 3.1, from the route table and the message types themselves.

Served as ``/api/v1/openapi.json`` and, for people, as one plain page at ``/docs/rest-api``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from services.api.access.route_permission import ANYBODY
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route

OPENAPI_PATH: Final = "/api/v1/openapi.json"
DOCS_PATH: Final = "/docs/rest-api"
_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)(?::path)?\}")

Schema = dict[str, Any]


def description_routes(routes: Sequence[Route], openapi_schema: Schema) -> list[Route]:
    """The two routes that describe ``routes``, one by ``openapi_schema``. Public: they say nothing that the source code
    does not."""
    document = msgspec.json.encode(openapi_schema)
    page = docs_page(routes).encode()

    async def openapi(_: Call[object, None, None]) -> RawResponse:
        return RawResponse(document, media_type="application/json")

    async def docs(_: Call[object, None, None]) -> RawResponse:
        return RawResponse(page, media_type="text/html; charset=utf-8")

    return [
        Route(method="GET", path=OPENAPI_PATH, handler=openapi, permission=ANYBODY),
        Route(method="GET", path=DOCS_PATH, handler=docs, permission=ANYBODY, raw=True),
    ]


def openapi_document(routes: Sequence[Route], *, title: str = "Resolute", version: str = "1") -> Schema:
    """The OpenAPI 3.1 document of ``routes``; schemas are named for their types."""
    types = [kind for route in routes for kind in (route.query, route.body, route.response) if kind is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
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
        if route.stream:
            schema = {"type": "object", "properties": {"result": schema}, "description": "one line of the stream"}
        content = {"content": {"application/json": {"schema": schema}}}
    operation: Schema = {
        "operationId": f"{route.method.lower()}_{_identifier(route.path)}",
        "tags": [_noun(route.path)],
        "parameters": [*_path_parameters(route), *_query_parameters(route, schema_of, components)],
        "responses": {"200": {"description": "OK", **content}, "default": {"description": "error"}},
    }
    if route.summary:
        operation["summary"] = route.summary
    if route.body is bytes:
        operation["requestBody"] = {"content": {"*/*": {}}}
    elif route.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": schema_of[repr(route.body)]}}}
    if route.permission.needs_token:
        operation["security"] = [{"bearer": []}]
    return operation


def _path_parameters(route: Route) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]


def _query_parameters(route: Route, schema_of: dict[str, Schema], components: dict[str, Schema]) -> list[Schema]:
    if route.query is None:
        return []
    reference = schema_of[repr(route.query)]["$ref"].rpartition("/")[2]
    properties = components[reference].get("properties", {})
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _identifier(path: str) -> str:
    return re.sub(r"\W+", "_", path.removeprefix("/api/v1/")).strip("_")


def _noun(path: str) -> str:
    return path.removeprefix("/api/v1").strip("/").partition("/")[0] or "root"


def _type_name(kind: Any) -> str:
    return "" if kind is None else getattr(kind, "__name__", str(kind))
