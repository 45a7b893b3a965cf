"""Refusals of an operation by status, and the bodies that they have.

Source: docs/reference/platform.md 1.3 and 1.4; services/api/http/errors.py.
"""

from __future__ import annotations

from typing import Final

from services.api.http.description.schemas import TEXT, Schema, reference
from services.api.http.routing import Route

_WHAT: Final = {
    "400": ("BadRequest", "The request is not valid; the message names the field."),
    "401": ("Unauthenticated", "The request has no valid credentials."),
    "403": ("PermissionDenied", "The caller does not have the permission that the operation requires."),
    "404": ("NotFound", "An object that the request names does not exist, or the caller may not see it."),
    "409": ("Conflict", "Another object has that name already."),
    "429": ("TooManyRequests", "Too many logins with this user name have failed."),
    "503": ("Unavailable", "A service that the request depends on is unavailable. Repeat it after `Retry-After`."),
    "default": ("Failure", "The request failed. The status tells whether the client or the server is at fault."),
}
_ERROR: Final = {
    "description": "An error: `error` is a message for people, `reason` and `code` are the status as gRPC defines it.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "reason", "error"],
            "properties": {"code": {"type": "integer", "format": "int32"}, "reason": TEXT, "error": TEXT},
        }
    },
}
_STREAM_ERROR: Final = {
    "description": "An error of a stream, in place of the stream or as its last line.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["grpcCode", "httpCode", "message", "httpStatus", "details", "error"],
            "properties": {
                "grpcCode": {"type": "integer", "format": "int32"},
                "httpCode": {"type": "integer", "format": "int32"},
                "message": TEXT,
                "httpStatus": TEXT,
                "details": {"type": "array", "items": TEXT, "maxItems": 0},
                "error": TEXT,
            },
        }
    },
}
_PLAIN_ERROR: Final = {
    "description": "An error of an operation outside of `/api/v1`.",
    "type": "object",
    "required": ["message"],
    "properties": {"message": TEXT},
}
_SCIM_ERROR: Final = {
    "description": "An error of SCIM (RFC 7644 3.12).",
    "type": "object",
    "required": ["schemas", "status", "detail"],
    "properties": {
        "schemas": {"type": "array", "items": TEXT},
        "status": TEXT,
        "scimType": TEXT,
        "detail": TEXT,
    },
}
ERRORS: Final = {
    "Error": _ERROR,
    "StreamError": _STREAM_ERROR,
    "PlainError": _PLAIN_ERROR,
    "ScimError": _SCIM_ERROR,
}
"""Bodies of refusals by the names of their schemas."""
_SHAPES: Final = {
    "": ("Error", "application/json"),
    "Stream": ("StreamError", "application/json"),
    "Plain": ("PlainError", "application/json"),
    "Scim": ("ScimError", "application/scim+json"),
}
MAKES_A_NAME: Final = frozenset(
    {
        "PATCH /api/v1/models/{modelName}",
        "PATCH /api/v1/projects/{id}",
        "PATCH /api/v1/template/rename",
        "PATCH /api/v1/users/assignments",
        "PATCH /api/v1/users/{userId}",
        "PATCH /api/v1/workspaces/{id}",
        "POST /api/v1/checkpoints",
        "POST /api/v1/groups",
        "POST /api/v1/models",
        "POST /api/v1/projects/{projectId}/move",
        "POST /api/v1/resolute/event-webhooks",
        "POST /api/v1/roles/add-assignments",
        "POST /api/v1/templates/{name:path}",
        "POST /api/v1/users",
        "POST /api/v1/webhooks",
        "POST /api/v1/workspaces",
        "POST /api/v1/workspaces/{workspaceId}/projects",
        "POST /scim/v2/Groups",
        "POST /scim/v2/Users",
        "PATCH /scim/v2/Groups/{id}",
        "PATCH /scim/v2/Users/{id}",
        "PUT /api/v1/groups/{groupId}",
        "PUT /scim/v2/Groups/{id}",
        "PUT /scim/v2/Users/{id}",
    }
)
"""Calls that make something of which there can be one only."""
_ALSO: Final = {
    "POST /api/v1/auth/login": {"401", "403", "429"},
    "POST /oauth2/token": {"401"},
}


def refusals(route: Route) -> Schema:
    """The refusals of a route, as references to components."""
    return {
        status: {"$ref": f"#/components/responses/{_shape_of(route)}{_WHAT[status][0]}"}
        for status in sorted({*_statuses(route), "503", "default"})
    }


def refusal_components() -> dict[str, Schema]:
    """The components that ``refusals`` refers to."""
    return {shape + name: _response(shape, status) for shape in _SHAPES for status, (name, _) in _WHAT.items()}


def _statuses(route: Route) -> set[str]:
    call = f"{route.method} {route.path}"
    found = set(_ALSO.get(call, ()))
    takes_body = route.body is not None
    if takes_body or route.query is not None or "{" in route.path:
        found.add("400")
    if route.permission.needs_token or route.path.startswith("/scim/"):
        found |= {"401", "403"}
    if takes_body or "{" in route.path or _names_objects(route):
        found.add("404")
    if call in MAKES_A_NAME:
        found.add("409")
    return found


def _names_objects(route: Route) -> bool:
    fields = () if route.query is None else route.query.__struct_fields__  # type: ignore[attr-defined]
    return any(each == "id" or each.endswith(("_id", "_ids")) for each in fields)


def _shape_of(route: Route) -> str:
    if route.write_error is not None:
        return "Scim"
    return "Stream" if route.stream else "Plain" if route.raw else ""


def _response(shape: str, status: str) -> Schema:
    schema, media_type = _SHAPES[shape]
    response: Schema = {"description": _WHAT[status][1], "content": {media_type: {"schema": reference(schema)}}}
    if status == "503":
        response["headers"] = {"Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}}
    return response
