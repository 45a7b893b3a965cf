"""Refusals of a cluster configuration in words for whoever wrote it: the key, and the one that was probably meant."""

from __future__ import annotations

import re
from typing import Final

from msgspec.inspect import ListType, StructType, Type, UnionType, VarTupleType, type_info

from libs.cluster.config import ClusterConfig

_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")


def explain_refusal(message: str) -> tuple[str, str]:
    """The key that a message of ``read_cluster_config`` is about, empty where that is not known, and what it says."""
    place = _PLACE.search(message)
    key = place[1] if place else ""
    says = _PLACE.sub("", message)
    if unknown := _UNKNOWN.search(says):
        import difflib  # noqa: PLC0415  for mistakes alone

        close = difflib.get_close_matches(unknown[1], _keys_at(key), n=1)
        key = f"{key}.{unknown[1]}" if key else unknown[1]
        says = f"nothing of this name is known; {f'did you mean {close[0]}?' if close else 'remove it'}"
    return key, says


def in_words(path: object, message: str) -> str:
    """The refusal of a file in one sentence."""
    key, says = explain_refusal(message.removeprefix(f"{path}: "))
    return f"{path}: {key}: {says}" if key else message


def _keys_at(place: str) -> list[str]:
    """What may be written at a place such as ``resource_pools[0].scheduler``."""
    at: Type | None = type_info(ClusterConfig)
    for part in re.findall(r"\w+|\[", place):
        if part.isdigit() or at is None:
            continue
        at = _items(at) if part == "[" else _field(at, part)
    struct = _struct(at)
    return [field.encode_name for field in struct.fields] if struct else []


def _struct(of: Type | None) -> StructType | None:
    if isinstance(of, UnionType):
        return next((kind for kind in of.types if isinstance(kind, StructType)), None)
    return of if isinstance(of, StructType) else None


def _field(of: Type, name: str) -> Type | None:
    struct = _struct(of)
    return next((field.type for field in struct.fields if field.encode_name == name), None) if struct else None


def _items(of: Type) -> Type | None:
    return of.item_type if isinstance(of, ListType | VarTupleType) else None
