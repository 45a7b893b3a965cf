"""Successes that are no message: files, pages, redirects, and JSON of other protocols. Data."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from services.api.http.description.refusals import ERRORS
from services.api.http.description.schemas import INT32, JSON, TEXT, Schema, reference

_SCIM: Final = "application/scim+json"
_BYTES: Final[Schema] = {"type": "string", "format": "binary"}
_ID_OF_SCIM: Final = {"type": "array", "items": TEXT}
SCHEMAS: Final[dict[str, Schema]] = {
    **ERRORS,
    "Context": {
        "description": "Files as a gzipped tar archive in base64.",
        "type": "object",
        "required": ["b64Tgz"],
        "properties": {"b64Tgz": {"type": "string", "contentEncoding": "base64"}},
    },
    "OAuthClient": {
        "description": "An OAuth client. The secret is returned only when the client is created.",
        "type": "object",
        "required": ["id", "name", "domain"],
        "properties": {"id": TEXT, "name": TEXT, "domain": TEXT, "secret": TEXT},
    },
    "OAuthGrant": {
        "description": "A token request (RFC 6749 4.1.3, 4.4.2 and 6).",
        "type": "object",
        "required": ["grant_type"],
        "properties": {
            "grant_type": {"type": "string", "enum": ["authorization_code", "refresh_token", "client_credentials"]},
            "code": TEXT,
            "redirect_uri": TEXT,
            "refresh_token": TEXT,
            "client_id": TEXT,
            "client_secret": TEXT,
        },
    },
    "OAuthTokens": {
        "description": "A token response (RFC 6749 5.1); `expires_in` is in seconds.",
        "type": "object",
        "required": ["access_token", "token_type", "expires_in"],
        "properties": {"access_token": TEXT, "token_type": TEXT, "expires_in": INT32, "refresh_token": TEXT},
    },
    "PreviewedDeletion": {
        "description": "Checkpoints that a retention policy would delete.",
        "type": "object",
        "required": ["checkpoints", "metric_name"],
        "properties": {
            "checkpoints": {"type": "array", "items": reference("PreviewedCheckpoint")},
            "metric_name": TEXT,
        },
    },
    "PreviewedCheckpoint": {
        "description": "A checkpoint that a retention policy would delete.",
        "type": "object",
        "required": ["TrialID", "ExperimentID", "StepsCompleted", "State", "UUID"],
        "properties": {
            "TrialID": {**INT32, "type": ["integer", "null"]},
            "ExperimentID": {**INT32, "type": ["integer", "null"]},
            "StepsCompleted": INT32,
            "State": TEXT,
            "ValidationMetrics": {"type": "object", "additionalProperties": JSON},
            "UUID": TEXT,
            "Resources": {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}},
            "ReportTime": {"type": "string", "format": "date-time"},
            "TaskID": {"type": ["string", "null"]},
            "AllocationID": {"type": ["string", "null"]},
            "Metadata": {"type": "object", "additionalProperties": JSON},
            "Size": {"type": ["integer", "null"], "format": "int64"},
            "StorageID": {"type": ["integer", "null"], "format": "int32"},
        },
    },
    "ScimResource": {
        "description": "A resource of SCIM (RFC 7643 3).",
        "type": "object",
        "properties": {"schemas": _ID_OF_SCIM, "id": TEXT},
        "additionalProperties": JSON,
    },
    "ScimList": {
        "description": "The resources that match a query (RFC 7644 3.4.2).",
        "type": "object",
        "required": ["schemas", "totalResults", "Resources"],
        "properties": {
            "schemas": _ID_OF_SCIM,
            "totalResults": INT32,
            "startIndex": INT32,
            "itemsPerPage": INT32,
            "Resources": {"type": "array", "items": reference("ScimResource")},
        },
    },
    "ScrapeTarget": {
        "description": "Addresses that Prometheus scrapes, with their labels.",
        "type": "object",
        "required": ["targets", "labels"],
        "properties": {
            "targets": {"type": "array", "items": TEXT},
            "labels": {"type": "object", "additionalProperties": TEXT},
        },
    },
}
"""Schemas by name."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a call answers, and the type of what it takes.

    media_types      none for an answer without a body
    body_type, body  what a call takes whose handler decodes its bytes
    """

    media_types: tuple[str, ...] = ()
    schema: Schema | None = None
    status: int = HTTPStatus.OK
    location: bool = False
    body_type: str = "application/json"
    body: Schema | None = None

    def response(self) -> Schema:
        """The response object."""
        response: Schema = {"description": HTTPStatus(self.status).phrase}
        if self.location:
            response["headers"] = {"Location": {"description": "The address to request next.", "schema": TEXT}}
        if self.media_types:
            response["content"] = {each: {"schema": self.schema} for each in self.media_types}
        return response


def _json(schema: Schema) -> Content:
    return Content(("application/json",), schema)


def _scim(name: str, *, status: int = HTTPStatus.OK) -> Content:
    return Content((_SCIM,), reference(name), status, body_type=_SCIM, body=reference("ScimResource"))


def _scim_calls(path: str) -> dict[str, Content]:
    resource = _scim("ScimResource")
    return {
        f"GET {path}": _scim("ScimList"),
        f"POST {path}": _scim("ScimResource", status=HTTPStatus.CREATED),
        f"GET {path}/{{id}}": resource,
        f"PUT {path}/{{id}}": resource,
        f"PATCH {path}/{{id}}": resource,
        f"DELETE {path}/{{id}}": Content(status=HTTPStatus.NO_CONTENT),
    }


_PAGE: Final = Content(("text/html",), TEXT)
_TABLE: Final = Content(("text/csv",), TEXT)
_REDIRECT: Final = Content(status=HTTPStatus.SEE_OTHER, location=True)

CONTENTS: Final[dict[str, Content]] = {
    "GET /": Content(status=HTTPStatus.MOVED_PERMANENTLY, location=True),
    "GET /det": _PAGE,
    "GET /det/{rest:path}": _PAGE,
    "GET /det/login": _PAGE,
    "GET /det/interactive/{rest:path}": _PAGE,
    "GET /det/wait/{rest:path}": _PAGE,
    "GET /oidc/sso": _REDIRECT,
    "GET /oidc/callback": _REDIRECT,
    "GET /oauth2/authorize": _REDIRECT,
    "GET /oauth2/clients": _json({"type": "array", "items": reference("OAuthClient")}),
    "POST /oauth2/clients": _json(reference("OAuthClient")),
    "DELETE /oauth2/clients/{id}": _json({"type": "object", "additionalProperties": False}),
    "POST /oauth2/token": Content(
        ("application/json",),
        reference("OAuthTokens"),
        body_type="application/x-www-form-urlencoded",
        body=reference("OAuthGrant"),
    ),
    "GET /checkpoints/{uuid}": Content(("application/gzip", "application/x-tar", "application/zip"), _BYTES),
    "GET /experiments/{experimentId}/preview_gc": _json(reference("PreviewedDeletion")),
    "GET /experiments/{experimentId}/model_def": Content(("application/x-gtar",), _BYTES),
    "GET /experiments/{experimentId}/file/download": Content(("application/octet-stream",), _BYTES),
    "GET /api/v1/tasks/{taskId}/context_directory": _json(reference("Context")),
    "GET /api/v1/allocations/{allocationId}/resources/{resourcesId}/rendezvous": _json(
        {"type": "object", "additionalProperties": JSON}
    ),
    "GET /prom/det-state-metrics": Content(("text/plain",), TEXT),
    "GET /prom/det-http-sd-config": _json({"type": "array", "items": reference("ScrapeTarget")}),
    "GET /tasks": _json({"type": "object", "additionalProperties": reference("AllocationSummary")}),
    "GET /stream": Content(status=HTTPStatus.SWITCHING_PROTOCOLS),
    "GET /resources/allocation/raw": _TABLE,
    "GET /resources/allocation/allocations-csv": _TABLE,
    "GET /resources/allocation/aggregated": _TABLE,
    "POST /task-logs": _json({"type": "string", "maxLength": 0}),
    **_scim_calls("/scim/v2/Users"),
    **_scim_calls("/scim/v2/Groups"),
    "GET /scim/v2/ServiceProviderConfig": _scim("ScimResource"),
    "GET /scim/v2/ResourceTypes": _scim("ScimList"),
    "GET /scim/v2/ResourceTypes/{id}": _scim("ScimResource"),
    "GET /scim/v2/Schemas": _scim("ScimList"),
    "GET /scim/v2/Schemas/{id}": _scim("ScimResource"),
}
"""By call."""
