"""Nodes of filters, as clients send them (docs/reference/platform.md 9.1)."""

from __future__ import annotations

from typing import Any


def group(conjunction: str, *children: Any) -> dict[str, Any]:
    return {"kind": "group", "conjunction": conjunction, "children": list(children)}


def field(column: str, operator: str, value: Any = None, location: str = "", kind: str = "") -> dict[str, Any]:
    node = {"kind": "field", "columnName": column, "operator": operator, "value": value}
    if location:
        node["location"] = f"LOCATION_TYPE_{location}"
    if kind:
        node["type"] = f"COLUMN_TYPE_{kind}"
    return node
