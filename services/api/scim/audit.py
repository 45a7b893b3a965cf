"""What the audit log has of a call by SCIM: what becomes of whom, and not their names and addresses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.api.scim.values import attribute

LONGEST: Final = 256
"""Characters of a text, and entries of a list, that are recorded."""
_SHOWN: Final = ("userName", "active", "displayName", "externalId", "members")
_OPERATION: Final = ("op", "path", "value")


def details_of(body: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: _short(value) for name in _SHOWN if (value := attribute(body, name)) is not None}
    given = attribute(body, "Operations")
    if isinstance(given, list):
        found["operations"] = [_operation(each) for each in given[:LONGEST] if isinstance(each, dict)]
    return found


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    path = str(attribute(operation, "path") or "")
    shown = {"op": _short(attribute(operation, "op")), "path": path[:LONGEST]}
    value = attribute(operation, "value")
    if path.lower() in {name.lower() for name in _SHOWN}:
        shown["value"] = _short(value)
    elif not path and isinstance(value, dict):
        shown["value"] = {name: _short(value[name]) for name in _SHOWN if name in value}
        shown["others"] = sorted(key[:LONGEST] for key in value if key not in _SHOWN)[:LONGEST]
    return shown


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(each.get("value") if isinstance(each, dict) else each) for each in value[:LONGEST]]
    if isinstance(value, dict):
        return sorted(key[:LONGEST] for key in value)[:LONGEST]
    if isinstance(value, str):
        return value[:LONGEST].encode("utf-8", "replace").decode().replace("\0", "")
    return value if isinstance(value, bool) else None
