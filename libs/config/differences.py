"""What a document is to have in other places: the parts by which one version of it differs from another. Pure.

Parts are those of the top level and, within objects there, of the level below; deeper ones are replaced whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def difference(version: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    """What has to be put over ``version`` to get ``other``, where both have the same keys."""
    found: Object = {}
    for key, value in other.items():
        before = version.get(key)
        if value == before:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            found[key] = {name: part for name, part in value.items() if part != before.get(name)}
        else:
            found[key] = value
    return found


def overlaid(version: Mapping[str, Any], changes: Mapping[str, Any]) -> Object:
    """``version`` with ``changes`` of ``difference``; both stay unchanged."""
    merged = dict(version)
    for key, value in changes.items():
        before = version.get(key)
        merged[key] = {**before, **value} if isinstance(value, dict) and isinstance(before, dict) else value
    return merged
