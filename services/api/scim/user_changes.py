"""What a provider of identities says of a user, and what it is after a PATCH. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from libs.errors import InvalidRequest
from services.api.scim import values
from services.api.scim.errors import InvalidPath
from services.api.scim.operations import Operation, operations

SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
IGNORED: Final = frozenset(
    {
        "addresses",
        "entitlements",
        "groups",
        "id",
        "ims",
        "locale",
        "meta",
        "nickname",
        "password",
        "phonenumbers",
        "photos",
        "preferredlanguage",
        "profileurl",
        "roles",
        "schemas",
        "timezone",
        "title",
        "usertype",
        "x509certificates",
    }
)
"""Attributes of the schema that are taken and not kept. Users log in at the provider, so a password is not wanted."""


class UserAttributes(Struct, frozen=True, kw_only=True):
    """A user as the provider has it."""

    user_name: str
    external_id: str | None = None
    active: bool = True
    display_name: str = ""
    name: dict[str, str] = {}
    emails: list[dict[str, Any]] = []


def described(body: Mapping[str, Any], *, before: UserAttributes | None = None) -> UserAttributes:
    """The user that a whole resource describes. Raises InvalidRequest.

    before  the user that it replaces; who does not say whether it is active leaves that as it is
    """
    active = values.attribute(body, "active")
    user_name = values.text(values.attribute(body, "userName"), "userName").strip()
    if not user_name:
        raise InvalidRequest("userName: required")
    return UserAttributes(
        user_name=user_name,
        external_id=values.text(values.attribute(body, "externalId"), "externalId") or None,
        active=values.flag(active, "active") if active is not None else before is None or before.active,
        display_name=values.text(values.attribute(body, "displayName"), "displayName").strip(),
        name=values.name(values.attribute(body, "name")),
        emails=values.emails(values.attribute(body, "emails")),
    )


def patched(before: UserAttributes, body: Mapping[str, Any]) -> UserAttributes:
    """The user after all operations of a PATCH. Raises InvalidRequest, InvalidPath, InvalidSyntax."""
    user = before
    for operation in operations(body, schema=SCHEMA):
        user = _applied(user, operation)
    return user


def _applied(user: UserAttributes, operation: Operation) -> UserAttributes:
    if operation.is_foreign or operation.attribute in IGNORED:
        return user
    if operation.attribute == "emails":
        return replace(user, emails=_emails(user.emails, operation))
    if operation.attribute == "name":
        return replace(user, name=_name(user.name, operation))
    if operation.selector or operation.sub:
        raise InvalidPath(f"path: {operation.path[:100]!r} is not understood")
    return replace(user, **_single(operation.attribute, None if operation.verb == "remove" else operation.value))


def _single(attribute: str, value: Any) -> dict[str, Any]:
    """What an attribute that has one value becomes; None removes it."""
    match attribute:
        case "active":
            return {"active": values.flag(value, "active")}
        case "displayname":
            return {"display_name": values.text(value, "displayName").strip()}
        case "externalid":
            return {"external_id": values.text(value, "externalId") or None}
        case "username":
            if not (wanted := values.text(value, "userName").strip()):
                raise InvalidRequest("userName: cannot be removed")
            return {"user_name": wanted}
    raise InvalidPath(f"path: a user has no attribute {attribute[:100]!r}")


def _name(name: dict[str, str], operation: Operation) -> dict[str, str]:
    if operation.selector:
        raise InvalidPath("path: a user has one name, of which nothing can be selected")
    if not operation.sub:
        return {} if operation.verb == "remove" else {**name, **values.name(operation.value)}
    part = values.name_part(operation.sub)
    if part is None:
        raise InvalidPath(f"path: a name has no part {operation.sub[:100]!r}")
    if operation.verb == "remove":
        return {key: value for key, value in name.items() if key != part}
    return {**name, part: values.text(operation.value, f"name.{part}")}


def _emails(emails: list[dict[str, Any]], operation: Operation) -> list[dict[str, Any]]:
    removing = operation.verb == "remove"
    if operation.selector is None and not operation.sub:
        if removing:
            return []
        given = values.emails(operation.value)
        return given if operation.verb == "replace" else values.emails([*emails, *_new(given, emails)])
    if operation.sub.lower() not in ("", "value", "type", "display", "primary"):
        raise InvalidPath(f"path: an e-mail address has no part {operation.sub[:100]!r}")
    chosen = [email for email in emails if _is_chosen(email, operation.selector)]
    if removing:
        return [email for email in emails if email not in chosen]
    sub = operation.sub.lower() or "value"
    change = {sub: values.unwrapped(operation.value)}
    if not chosen and sub == "value":
        kind = dict([operation.selector] if operation.selector and operation.selector[0] == "type" else [])
        return values.emails([*emails, {**kind, **change}])
    return values.emails([{**email, **change} if email in chosen else email for email in emails])


def _new(given: list[dict[str, Any]], there: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [email for email in given if email not in there]


def _is_chosen(email: Mapping[str, Any], selector: tuple[str, str] | None) -> bool:
    if selector is None:
        return True
    key, wanted = selector
    return str(email.get(key, "")).lower() == wanted.lower()
