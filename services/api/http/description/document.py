"""The OpenAPI document, put together from routes and the types of their messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.api.http.description.contents import CONTENTS, SCHEMAS
from services.api.http.description.operations import body_of, describe_operation
from services.api.http.description.parameters import PARAMETER
from services.api.http.description.refusals import refusal_components
from services.api.http.description.schemas import Schema, Schemas, names_below
from services.api.http.description.tags import TAGS
from services.api.http.routing import Route, shape_of

_SECURITY: Final = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of a login (`login`), an access token (`postAccessToken`), or the token of a task.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "auth",
        "description": "The token of a login, as browsers send it. Requests that change something must come from "
        "the same origin.",
    },
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The id and the secret of an OAuth client, or the credentials of a SCIM client.",
    },
}


def describe(routes: Sequence[Route], *, title: str, version: str) -> Schema:
    """The OpenAPI 3.1 document of ``routes``.

    Schemas are named for their types. A type that is both sent and received has two: in a reply every field is there,
    in a request most may be left out, and that one has ``Input`` after its name.
    """
    sent = [route.response for route in routes if route.response is not None]
    received = [kind for route in routes for kind in (route.query, body_of(route)) if kind is not None]
    schemas = Schemas(sent=sent, received=received, others=SCHEMAS)
    paths = _paths(routes, schemas)
    responses = refusal_components()
    used = names_below([paths, responses], schemas.components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": version,
            "summary": "The REST API of Resolute",
            "description": "Compatible with the API of the Determined master 0.38.1. Operations below "
            "`/api/v1/resolute/` are additions.",
        },
        "tags": _tags(paths),
        "paths": paths,
        "components": {
            "schemas": {name: schemas.components[name] for name in sorted(used)},
            "responses": responses,
            "securitySchemes": _SECURITY,
        },
    }


def _paths(routes: Sequence[Route], schemas: Schemas) -> dict[str, Schema]:
    """Operations by path and method.

    Paths that differ only in the names of parameters are one path, which OpenAPI demands: with the names of the first.
    """
    paths: dict[str, Schema] = {}
    known: dict[tuple[str, ...], str] = {}
    for route in routes:
        path = known.setdefault(shape_of(route.path), route.path)
        operation = describe_operation(route, schemas, CONTENTS.get(f"{route.method} {route.path}"))
        names = PARAMETER.findall(path)
        of_path = (each for each in operation["parameters"] if each["in"] == "path")
        for parameter, name in zip(of_path, names, strict=True):
            parameter["name"] = name
        paths.setdefault(PARAMETER.sub(r"{\1}", path), {})[route.method.lower()] = operation
    return paths


def _tags(paths: dict[str, Schema]) -> list[Schema]:
    used = {tag for methods in paths.values() for operation in methods.values() for tag in operation["tags"]}
    return [{"name": name, "description": TAGS[name]} if name in TAGS else {"name": name} for name in sorted(used)]
