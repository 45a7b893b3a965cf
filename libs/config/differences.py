"""What a document is to have in other places: the parts by which one version of it differs from another. Pure.

Parts are those of the top level and, within objects there, of the level below; deeper ones are replaced whole.
What one version lacks is None in the difference, and in what is made with it: readers take that for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def difference(version: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    """What has to be put over ``version`` to get ``other``; None for the parts that only ``version`` has."""
    found = _changed(version, other)
    for key, value in found.items():
        before = version.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            found[key] = _changed(before, value)
    return found


def _changed(version: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    keys = (*other, *(key for key in version if key not in other))
    return {key: other.get(key) for key in keys if other.get(key) != version.get(key)}


def overlaid(version: Mapping[str, Any], changes: Mapping[str, Any]) -> Object:
    """``version`` with ``changes`` of ``difference``; both stay unchanged."""
    merged = dict(version)
    for key, value in changes.items():
        before = version.get(key)
        merged[key] = {**before, **value} if isinstance(value, dict) and isinstance(before, dict) else value
    return merged
