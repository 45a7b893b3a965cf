"""Parameters of paths and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from services.api.http.description.schemas import INT32, TEXT, Schema, Schemas
from services.api.http.routing import Route

PARAMETER: Final = re.compile(r"\{(\w+)(?::path)?\}")
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
"""Parameters of paths that are 32-bit integers wherever they occur below ``/api/v1``; all others are text."""
_CLOSED: Final = {"workloadType": ("EXPERIMENT", "NTSC")}
"""Parameters of paths that are one of a few texts."""
_TEXTS_BELOW: Final = ("/scim/", "/oauth2/")
"""Where ids are texts, as these protocols have them."""


def path_parameters(route: Route) -> list[Schema]:
    """Those of its path, in order."""
    return [
        {"name": name, "in": "path", "required": True, "schema": _schema_in_path(route, name)}
        for name in PARAMETER.findall(route.path)
    ]


def _schema_in_path(route: Route, name: str) -> Schema:
    if name in _CLOSED:
        return {**TEXT, "enum": list(_CLOSED[name])}
    return INT32 if name in INTEGERS and not route.path.startswith(_TEXTS_BELOW) else TEXT


def query_parameters(route: Route, schemas: Schemas) -> list[Schema]:
    """Those of its query; fields of a struct inside of it have a dot in their names."""
    return [] if route.query is None else list(_fields(schemas.of_request(route.query), schemas))


def _fields(schema: Schema, schemas: Schemas, prefix: str = "") -> Iterator[Schema]:
    struct = schemas.object_of(schema)
    assert struct is not None
    for name, field in struct["properties"].items():
        if schemas.object_of(field) is not None:
            yield from _fields(field, schemas, f"{prefix}{name}.")
            continue
        required = {"required": True} if name in struct.get("required", ()) else {}
        yield {"name": prefix + name, "in": "query", **required, "schema": _without_null(field)}


def _without_null(schema: Schema) -> Schema:
    """Nothing in a query is null; what may be that may be left out."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema
