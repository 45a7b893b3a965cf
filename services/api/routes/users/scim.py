"""SCIM 2.0: a provider of identities makes, finds, changes and deactivates users and groups (RFC 7644)."""

from __future__ import annotations

from typing import Final

from services.api.http.routing import Route
from services.api.scim.endpoint import PREFIX, endpoint, write_error


def _route(method: str, path: str, handle: str, summary: str) -> Route:
    """``handle`` is a function of ``services/api/scim/calls.py``."""
    path = f"{PREFIX}{path}"
    body = bytes if method in ("POST", "PUT", "PATCH") else None
    return Route(
        method=method,
        path=path,
        handler=endpoint(handle),
        body=body,
        raw=True,
        write_error=write_error,
        summary=summary,
    )


ROUTES: Final = (
    _route("GET", "/Users", "list_users", "Find users by SCIM"),
    _route("POST", "/Users", "create_user", "Create a user by SCIM"),
    _route("GET", "/Users/{id}", "get_user", "Get a user by SCIM"),
    _route("PUT", "/Users/{id}", "replace_user", "Replace a user by SCIM"),
    _route("PATCH", "/Users/{id}", "patch_user", "Change a user by SCIM"),
    _route("DELETE", "/Users/{id}", "remove_user", "Deactivate a user for good by SCIM"),
    _route("GET", "/Groups", "list_groups", "Find groups by SCIM"),
    _route("POST", "/Groups", "create_group", "Create a group by SCIM"),
    _route("GET", "/Groups/{id}", "get_group", "Get a group by SCIM"),
    _route("PUT", "/Groups/{id}", "replace_group", "Replace a group by SCIM"),
    _route("PATCH", "/Groups/{id}", "patch_group", "Change a group by SCIM"),
    _route("DELETE", "/Groups/{id}", "remove_group", "Delete a group by SCIM"),
    _route("GET", "/ServiceProviderConfig", "service_provider_config", "Get which features of SCIM are supported"),
    _route("GET", "/ResourceTypes", "list_resource_types", "List the kinds of resources of SCIM"),
    _route("GET", "/ResourceTypes/{id}", "get_resource_type", "Get a kind of resources of SCIM"),
    _route("GET", "/Schemas", "list_schemas", "List the schemas of SCIM"),
    _route("GET", "/Schemas/{id}", "get_schema", "Get a schema of SCIM"),
)
