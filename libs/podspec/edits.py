"""Edits of one object in a strategic merge patch: a change per field, and the directives beside them.

A patch spells its directives as extra keys (``$patch``, ``$retainKeys``, ``$setElementOrder/<field>``,
``$deleteFromPrimitiveList/<field>``). They are taken apart here, so that merging only sees fields.

Source: https://github.com/kubernetes/community, sig-api-machinery/strategic-merge-patch.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from libs.errors import InvalidRequest

Object: TypeAlias = dict[str, Any]
Strategy: TypeAlias = Literal["merge", "replace", "delete"]

DIRECTIVE: Final = "$patch"
RETAIN: Final = "$retainKeys"
ORDER: Final = "$setElementOrder/"
REMOVE: Final = "$deleteFromPrimitiveList/"


class InvalidPodPatch(InvalidRequest):
    """A pod spec that cannot be merged over another; says where."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"invalid pod spec: {path or 'pod'}: {message}")


class Unset:
    """The kind of ``UNSET``: a field that is not there, as opposed to one that is null."""


UNSET: Final = Unset()


@dataclass(frozen=True)
class Edit:
    """What happens to one field: ``remove`` values of a list, merge ``value`` into it, put it in ``order``."""

    value: Any = UNSET
    remove: Sequence[Any] = ()
    order: Sequence[Any] | None = None


def strategy(patch: Mapping[str, Any], path: str) -> Strategy:
    """How this object is to be applied: merged, unless it carries a ``$patch`` directive.

    The directive ``merge`` is in the documentation of the format, but kubectl does not know it; it is allowed here.
    """
    match patch.get(DIRECTIVE):
        case None | "merge":
            return "merge"
        case "replace":
            return "replace"
        case "delete":
            return "delete"
        case other:
            raise InvalidPodPatch(path, f"$patch must be merge, replace or delete, not {other!r}")


def field_edits(patch: Mapping[str, Any], path: str) -> dict[str, Edit]:
    """Field name -> edit, in the order in which the patch mentions the fields first."""
    edits: dict[str, Edit] = {}
    for key, value in patch.items():
        if key in (DIRECTIVE, RETAIN):
            continue
        if key.startswith(ORDER):
            name = key.removeprefix(ORDER)
            edits[name] = replace(edits.get(name, Edit()), order=_as_list(value, path, key))
        elif key.startswith(REMOVE):
            name = key.removeprefix(REMOVE)
            edits[name] = replace(edits.get(name, Edit()), remove=_as_list(value, path, key))
        else:
            edits[key] = replace(edits.get(key, Edit()), value=value)
    return edits


def retained(base: Object, patch: Mapping[str, Any], edits: Mapping[str, Edit], path: str) -> Object:
    """What ``$retainKeys`` leaves of the base: everything, when the patch has no such directive."""
    if RETAIN not in patch:
        return dict(base)
    keep = _as_list(patch[RETAIN], path, RETAIN)
    for name, edit in edits.items():
        if name not in keep and edit.value is not UNSET and edit.value is not None:
            raise InvalidPodPatch(path, f"{name!r} is set, but not in {RETAIN}")
    return {key: value for key, value in base.items() if key in keep}


def _as_list(value: Any, path: str, directive: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidPodPatch(path, f"{directive} must be a list")
    return value
