"""Mistakes in a cluster configuration (``master.yaml``), in the words with which services refuse it."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Final

from msgspec.inspect import ListType, StructType, Type, UnionType, VarTupleType, type_info

from deploy.operations.config.mistakes import Mistake
from libs.cluster.config import ClusterConfig
from libs.cluster.loading import read_cluster_config
from libs.errors import InvalidRequest

_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")


def cluster_mistakes(path: Path) -> list[Mistake]:
    """Warnings for keys that are not taken as written, or the error that keeps services from starting."""
    try:
        _, warnings = read_cluster_config(path)
    except InvalidRequest as error:
        return [_error(str(error).removeprefix(f"{path}: "))]
    return [Mistake("warning", warning.key, warning.says) for warning in warnings]


def _error(message: str) -> Mistake:
    """The refusal, with the key that it is about and what to do where that is known."""
    place = _PLACE.search(message)
    key = place[1] if place else ""
    says = _PLACE.sub("", message)
    if unknown := _UNKNOWN.search(says):
        close = difflib.get_close_matches(unknown[1], _keys_at(key), n=1)
        key = f"{key}.{unknown[1]}" if key else unknown[1]
        says = f"nothing of this name is known; {f'did you mean {close[0]}?' if close else 'remove it'}"
    return Mistake("error", key, says)


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
