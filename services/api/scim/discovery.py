"""What this end of SCIM can do, for clients that ask before they begin (RFC 7644 4, RFC 7643 5 to 7). Pure."""

from __future__ import annotations

from typing import Any, Final

import scim2_models as scim

from services.api.scim.models import ScimGroup, ScimUser

MOST_LISTED: Final = 1000
_KINDS: Final[tuple[type[scim.Resource[Any]], ...]] = (ScimUser, ScimGroup)
_SCHEMES: Final = {
    "basic": ("httpbasic", "HTTP Basic", "A name and a password of the configuration", "rfc7617"),
    "oauth": ("oauthbearertoken", "OAuth 2.0", "A token of a client that an administrator has registered", "rfc6750"),
}


def service_provider_config(*, auth: str, base: str) -> dict[str, Any]:
    kind, name, description, source = _SCHEMES[auth]
    scheme = scim.AuthenticationScheme(
        type=scim.AuthenticationScheme.Type(kind),
        name=name,
        description=description,
        spec_uri=scim.Reference[scim.External](f"https://www.rfc-editor.org/info/{source}"),
    )
    config = scim.ServiceProviderConfig(
        patch=scim.Patch(supported=True),
        bulk=scim.Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=scim.Filter(supported=True, max_results=MOST_LISTED),
        change_password=scim.ChangePassword(supported=False),
        sort=scim.Sort(supported=False),
        etag=scim.ETag(supported=False),
        authentication_schemes=[scheme],
    )
    return _at(f"{base}/ServiceProviderConfig", config)


def resource_types(*, base: str) -> list[dict[str, Any]]:
    types = [scim.ResourceType.from_resource(kind) for kind in _KINDS]
    return [_at(f"{base}/ResourceTypes/{each.id}", each) for each in types]


def schemas(*, base: str) -> list[dict[str, Any]]:
    found = [kind.to_schema() for kind in _KINDS]
    for each, kind in zip(found, _KINDS, strict=True):
        each.name = each.description = scim.ResourceType.from_resource(kind).name  # the class has another one
    return [_at(f"{base}/Schemas/{each.id}", each) for each in found]


def _at(location: str, found: scim.Resource[Any]) -> dict[str, Any]:
    found.meta = scim.Meta(resource_type=type(found).__name__, location=location)
    return found.model_dump()
