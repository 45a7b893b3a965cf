"""What a provider of identities says of a user, and what it is after a PATCH. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scim2_models import PatchOp

from libs.errors import InvalidRequest
from services.api.scim import values
from services.api.scim.models import Email, ScimUser, tolerant
from services.api.scim.operations import Operation, operations

_MOST_PARTS: Final = 10
"""Of an object; each name is parsed as a path, whether there is such a part or not. A name has six, an address four."""
_KEPT: Final = ("userName", "externalId", "active", "displayName", "name", "emails")
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


def described(body: Mapping[str, Any], *, before: ScimUser | None = None) -> ScimUser:
    """The user that a whole resource describes. Raises InvalidRequest.

    before  the user that it replaces; who does not say whether it is active leaves that as it is
    """
    user = _described({name: values.attribute(body, name) for name in _KEPT})
    if user.active is None:
        user.active = before is None or before.active
    return _whole(user)


def patched(user: ScimUser, body: Mapping[str, Any]) -> ScimUser:
    """The user after all operations of a PATCH. Raises InvalidRequest, InvalidPath, InvalidSyntax."""
    changes = []
    for operation in operations(body, model=ScimUser, ignored=IGNORED):
        verb, path, value = operation.verb, operation.path, _value(operation)
        if verb != "add" and value is None:
            changes.append({"op": "remove", "path": path})
        elif value is not None:
            if operation.is_whole:
                _described({path.parts[0]: value})
            changes.append({"op": verb, "path": path, "value": value})
    if changes:
        _apply(user, changes)
    return _whole(user)


def _value(operation: Operation) -> Any:
    """None for a removal, of which Entra ID says a value too. Raises InvalidRequest.

    Of addresses that a filter selects it is an object, whose parts they get and keep the others; providers send the
    text of an address for it, and a list of one.
    """
    value = None if operation.verb == "remove" else operation.value
    if operation.path.value_filter is not None and len(operation.path.parts) == 1:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str):
            value = {"value": value}
    if isinstance(value, dict) and len(value) > _MOST_PARTS:
        raise InvalidRequest(f"{operation.attribute}: there may be {_MOST_PARTS} parts, and no more")
    return value


def _apply(user: ScimUser, changes: list[dict[str, Any]]) -> None:
    """One after the other, for who was the primary address in between. Raises InvalidRequest, InvalidPath.

    Entra ID says parts of a new address before its value. One that never gets a value is not kept, and cannot have
    taken from another that it is the primary one.
    """
    with tolerant():
        holders = [_primary(user)]
        for each in PatchOp[ScimUser].model_validate({"Operations": changes}).operations or ():
            PatchOp[ScimUser].model_construct(operations=[each]).patch(user)
            holders.append(_primary(user))
    holder = next((each for each in reversed(holders) if each is None or each.value), None)
    if holder is not None:
        holder.primary = True


def _primary(user: ScimUser) -> Email | None:
    return next((each for each in user.emails or () if each.primary), None)


def _described(given: Mapping[str, Any]) -> ScimUser:
    """Raises InvalidRequest."""
    with tolerant():
        user = ScimUser.model_validate(given)
    if any(each.value is None for each in user.emails or ()):
        raise InvalidRequest("emails: each must be an object with a value")
    return user


def _whole(user: ScimUser) -> ScimUser:
    """Raises InvalidRequest."""
    if not user.user_name:
        raise InvalidRequest("userName: required")
    if user.active is None:
        raise InvalidRequest("active: must be true or false")
    user.emails = [each for each in user.emails or () if each.value] or None  # a value may have been removed
    return user
