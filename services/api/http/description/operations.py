"""One operation: what it is called, what it takes, what it answers and how it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from services.api.http.description.contents import Content
from services.api.http.description.names import NAMES, USE_INSTEAD
from services.api.http.description.parameters import PARAMETER, path_parameters, query_parameters
from services.api.http.description.refusals import refusals
from services.api.http.description.schemas import Schema, Schemas, readable, reference
from services.api.http.description.tags import tag_of
from services.api.http.replies.silence import LINES_TYPE
from services.api.http.routing import Route

_SECURITY: Final[list[Schema]] = [{"bearer": []}, {"cookie": []}]
_OF_CLIENTS: Final[list[Schema]] = [{"bearer": []}, {"basic": []}]
_STREAM: Final = (
    "Newline-delimited JSON: this is one line. The last one may be an error. Requests that accept "
    f"`{LINES_TYPE}` get this type; others get the same lines as `application/json`."
)


def describe_operation(route: Route, schemas: Schemas, content: Content | None) -> Schema:
    """The operation of a route; ``content`` is what it answers where that is no message."""
    call = f"{route.method} {route.path}"
    operation: Schema = {
        "operationId": NAMES.get(call) or _name_for(route),
        "summary": route.summary,
        "description": _description(route),
        "tags": [tag_of(route.path)],
        "parameters": [*path_parameters(route), *query_parameters(route, schemas)],
        "responses": {**_success(route, schemas, content), **refusals(route)},
    }
    if call in USE_INSTEAD:
        operation |= {"deprecated": True, "description": USE_INSTEAD[call]}
    if (body := body_of(route)) is not None:
        operation["requestBody"] = _body(schemas, schemas.of_request(body), content)
    operation = {key: value for key, value in operation.items() if value or key == "parameters"}
    if route.permission.needs_token:
        operation["security"] = _SECURITY
    elif route.path.startswith("/scim/") or route.path == "/oauth2/token":
        operation["security"] = _OF_CLIENTS
    return operation


def _body(schemas: Schemas, schema: Schema, content: Content | None) -> Schema:
    """A body with nothing in it may as well be left out."""
    if content is not None and content.body is not None:
        return {"required": True, "content": {content.body_type: {"schema": content.body}}}
    struct = schemas.object_of(schema)
    is_required = schema.get("type") == "array" if struct is None else bool(struct.get("required"))
    return {"required": is_required, "content": {"application/json": {"schema": schema}}}


def body_of(route: Route) -> Any:
    """What the body holds, also when the handler decodes it."""
    return route.body if route.described_body is None else route.described_body


def _description(route: Route) -> str:
    """What its handler and its query say of themselves."""
    texts = [readable(route.handler.__doc__), readable(route.query.__doc__ if route.query is not None else None)]
    return "\n\n".join(filter(None, texts))


def _success(route: Route, schemas: Schemas, content: Content | None) -> Schema:
    if content is not None:
        return {str(content.status): content.response()}
    if route.response is None:
        return {"200": {"description": HTTPStatus.OK.phrase}}
    schema = schemas.of_reply(route.response)
    if route.stream:
        return {"200": {"description": _STREAM, "content": {LINES_TYPE: {"schema": _line(schema)}}}}
    return {"200": {"description": HTTPStatus.OK.phrase, "content": {"application/json": {"schema": schema}}}}


def _line(schema: Schema) -> Schema:
    """What each line is: the next message, or the error that has ended the stream."""
    message = {"type": "object", "required": ["result"], "properties": {"result": schema}}
    return {"oneOf": [message, reference("StreamError")]}


_VERBS: Final[Mapping[str, str]] = {"POST": "post", "PUT": "put", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


def _name_for(route: Route) -> str:
    """A name for a route that has none in the table: its method and its path."""
    path = PARAMETER.sub(lambda found: f"by {found[1]}", route.path).removeprefix("/api/v1/").removeprefix("resolute/")
    words = re.findall(r"[A-Za-z0-9]+", path)
    return _VERBS[route.method] + "".join(word[0].upper() + word[1:] for word in words)
