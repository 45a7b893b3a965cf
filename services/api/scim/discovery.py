"""What this end of SCIM can do, for clients that ask before they begin (RFC 7644 4, RFC 7643 5 to 7). Pure."""

from __future__ import annotations

from typing import Any, Final

from services.api.scim import group_changes, user_changes
from services.api.scim.values import NAME_PARTS

MOST_LISTED: Final = 1000
_CONFIG_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
_TYPE_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_SCHEMA_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:Schema"
_SCHEMES: Final = {
    "basic": ("httpbasic", "HTTP Basic", "A name and a password of the configuration", "rfc7617"),
    "oauth": ("oauthbearertoken", "OAuth 2.0", "A token of a client that an administrator has registered", "rfc6750"),
}


def service_provider_config(*, auth: str, base: str) -> dict[str, Any]:
    kind, name, description, source = _SCHEMES[auth]
    return {
        "schemas": [_CONFIG_SCHEMA],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST_LISTED},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": False},
        "authenticationSchemes": [
            {
                "type": kind,
                "name": name,
                "description": description,
                "specUri": f"https://www.rfc-editor.org/info/{source}",
            }
        ],
        "meta": {"resourceType": "ServiceProviderConfig", "location": f"{base}/ServiceProviderConfig"},
    }


def resource_types(*, base: str) -> list[dict[str, Any]]:
    return [_resource_type("User", user_changes.SCHEMA, base), _resource_type("Group", group_changes.SCHEMA, base)]


def _resource_type(name: str, schema: str, base: str) -> dict[str, Any]:
    return {
        "schemas": [_TYPE_SCHEMA],
        "id": name,
        "name": name,
        "endpoint": f"/{name}s",
        "schema": schema,
        "meta": {"resourceType": "ResourceType", "location": f"{base}/ResourceTypes/{name}"},
    }


def schemas(*, base: str) -> list[dict[str, Any]]:
    return [
        _schema(user_changes.SCHEMA, "User", _USER, base),
        _schema(group_changes.SCHEMA, "Group", _GROUP, base),
    ]


def _schema(ident: str, name: str, attributes: list[dict[str, Any]], base: str) -> dict[str, Any]:
    return {
        "schemas": [_SCHEMA_SCHEMA],
        "id": ident,
        "name": name,
        "attributes": attributes,
        "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{ident}"},
    }


def _attribute(name: str, kind: str = "string", **differing: Any) -> dict[str, Any]:
    """An attribute with the characteristics of RFC 7643 2.2, and those that differ from them."""
    usual: dict[str, Any] = {
        "name": name,
        "type": kind,
        "multiValued": False,
        "required": False,
        "mutability": "readWrite",
        "returned": "default",
    }
    if kind == "string":
        usual |= {"caseExact": False, "uniqueness": "none"}
    return usual | differing


_USER: Final = [
    _attribute("userName", required=True, uniqueness="server"),
    _attribute("name", "complex", subAttributes=[_attribute(part) for part in NAME_PARTS]),
    _attribute("displayName"),
    _attribute("active", "boolean"),
    _attribute(
        "emails",
        "complex",
        multiValued=True,
        subAttributes=[
            _attribute("value"),
            _attribute("display"),
            _attribute("type"),
            _attribute("primary", "boolean"),
        ],
    ),
]
_GROUP: Final = [
    _attribute("displayName", required=True, uniqueness="server"),
    _attribute(
        "members",
        "complex",
        multiValued=True,
        subAttributes=[
            _attribute("value", mutability="immutable"),
            _attribute("display", mutability="readOnly"),
            _attribute("$ref", "reference", mutability="immutable", referenceTypes=["User"]),
        ],
    ),
]
