"""Fields of a pod that a user wrote, read with suspicion: YAML may hold anything where an object belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libs.errors import InvalidRequest

Json = dict[str, Any]


def object_at(holder: Mapping[str, Any], field: str, path: str = "") -> Json:
    """The object in ``field``; an empty one where there is none. Raises InvalidRequest for anything else."""
    value = holder.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"environment.pod_spec is not a pod: {_join(path, field)} must be an object")
    return dict(value)


def objects_at(holder: Mapping[str, Any], field: str, path: str = "") -> list[Json]:
    """The list of objects in ``field``; an empty one where there is none. Raises InvalidRequest for anything else."""
    value = holder.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidRequest(f"environment.pod_spec is not a pod: {_join(path, field)} must be a list of objects")
    return [dict(item) for item in value]


def texts_at(holder: Mapping[str, Any], field: str, path: str = "") -> dict[str, str]:
    """The mapping of texts in ``field``; numbers and truth values, which YAML makes of unquoted ones, become text."""
    return {str(key): _text(value) for key, value in object_at(holder, field, path).items() if value is not None}


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
