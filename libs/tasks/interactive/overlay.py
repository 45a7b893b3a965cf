"""Puts one layer of configuration over what lies below it: what wins, what is added, and what null clears.

Source: docs/reference/tasks-and-cli.md 2.5.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from libs.config.parts.environment import SLOT_TYPES
from libs.shapes.shape import Object

Rule: TypeAlias = Callable[[Any, Any], Any]
"""(what lies below, what lies above) -> the result; either may be None."""


def overlay(below: Mapping[str, Any], layer: Mapping[str, Any]) -> Object:
    """``layer`` (``layers.py``) over ``below``; both stay unchanged, and the result shares nothing with them."""
    return _object(copy.deepcopy(dict(below)), copy.deepcopy(dict(layer)), _CONFIG)


def _object(below: Object, above: Object, rules: Mapping[str, Rule]) -> Object:
    merged = {key: rules[key](below.get(key), value) if key in rules else value for key, value in above.items()}
    return {**below, **merged}


def _section(rules: Mapping[str, Rule]) -> Rule:
    return lambda below, above: _object(below or {}, above, rules)


def _union(below: Object | None, above: Object | None) -> Object | None:
    return None if above is None else {**(below or {}), **above}


def _key_by_key(below: Any, above: Any) -> Any:
    """Objects at any depth; lists are replaced, and nulls stay, since they mean something to the pod of the cluster."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _key_by_key(below.get(key), value) for key, value in above.items()}}


def _by_container_path(below: list[Object] | None, above: list[Object]) -> list[Object]:
    taken = {item["container_path"] for item in above}
    return [*above, *(item for item in below or () if item["container_path"] not in taken)]


def _appended(below: Object | None, above: Object) -> Object:
    """Per type of slot, since of two settings of a variable the later wins in the container."""
    merged = {slot_type: [*((below or {}).get(slot_type) or ()), *above.get(slot_type, ())] for slot_type in SLOT_TYPES}
    return {slot_type: variables for slot_type, variables in merged.items() if variables}


def _ignored(below: Any, _: Any) -> Any:
    return below


_CONFIG: Final[Mapping[str, Rule]] = {
    "bind_mounts": _by_container_path,
    "environment": _section(
        {
            "image": _union,
            "environment_variables": _appended,
            "ports": _ignored,
            "registry_auth": _union,
            "pod_spec": _key_by_key,
        }
    ),
    "resources": _section({"devices": _by_container_path}),
    "slurm": _union,
    "pbs": _union,
}
"""Fields with a rule of their own; any other is replaced by what lies above."""
