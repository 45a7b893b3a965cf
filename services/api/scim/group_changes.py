"""What a provider of identities says of a group, and what a PATCH changes of it. Pure.

A change of members names those it is about and not all of them: groups may be large, and change often. ``PatchOp`` of
scim2-models, which changes users, would have all of them in memory; it is its paths that are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from scim2_models.path import AttrPath, CompareOperator, Comparison

from libs.errors import InvalidRequest
from services.api.scim import values
from services.api.scim.errors import InvalidPath
from services.api.scim.models import ScimGroup
from services.api.scim.operations import Operation, operations

_IGNORED: Final = frozenset({"id", "meta", "schemas"})


class GroupChange(Struct, kw_only=True):
    """What is to change of a group.

    members  ids of users -> whether they are members afterwards
    others   whether members that are not named stay
    """

    display_name: str | UnsetType = UNSET
    external_id: str | UnsetType | None = UNSET
    members: dict[str, bool] = {}
    others: bool = True


def described(body: Mapping[str, Any]) -> GroupChange:
    """A change into the group that a whole resource describes. Raises InvalidRequest."""
    return GroupChange(
        display_name=_named(values.attribute(body, "displayName")),
        external_id=values.text(values.attribute(body, "externalId"), "externalId") or None,
        members=dict.fromkeys(values.ids(values.attribute(body, "members"), "members"), True),
        others=False,
    )


def patch(body: Mapping[str, Any]) -> GroupChange:
    """All operations of a PATCH together. Raises InvalidRequest, InvalidPath, InvalidSyntax."""
    change = GroupChange()
    for operation in operations(body, model=ScimGroup, ignored=_IGNORED):
        _apply(change, operation)
    return change


def _apply(change: GroupChange, operation: Operation) -> None:
    value = None if operation.verb == "remove" else operation.value
    match operation.attribute:
        case "members":
            _change_members(change, operation)
        case _ if not operation.is_whole:
            raise InvalidPath(f"path: {operation.path[:100]!r} is not understood")
        case "displayname":
            change.display_name = _named(value)
        case "externalid":
            change.external_id = values.text(value, "externalId") or None


def _change_members(change: GroupChange, operation: Operation) -> None:
    named = values.ids(operation.value, "members")
    if not operation.is_whole:
        named = values.ids(_selected(operation), "members")
    if operation.verb == "replace" or (operation.is_whole and operation.value is None):
        change.members, change.others = {}, False
    for ident in named:
        change.members[ident] = operation.verb != "remove"


def _selected(operation: Operation) -> Any:
    """The id of the one that is removed. Raises InvalidPath."""
    match operation.path.value_filter:
        case Comparison(AttrPath(attr), CompareOperator.eq, ident) if attr.lower() == "value":
            if operation.verb == "remove" and len(operation.path.parts) == 1:
                return ident
    raise InvalidPath('path: of members, those can be selected that are removed: members[value eq "id"]')


def _named(value: Any) -> str:
    if not (name := values.text(value, "displayName").strip()):
        raise InvalidRequest("displayName: required")
    return name
