"""Looks into a pod that somebody wrote by hand: what is not of the kind that Kubernetes expects counts as not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]


def object_in(holder: Any, field: str) -> Json:
    found = holder.get(field) if isinstance(holder, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def objects_in(holder: Any, field: str) -> Iterator[tuple[int, Json]]:
    """The objects of a list, with their places in it."""
    found = holder.get(field) if isinstance(holder, Mapping) else None
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def containers_in(spec: Json) -> Iterator[tuple[str, Json]]:
    """Every container of a pod, of any kind, with its path."""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in objects_in(spec, kind):
            yield f"spec.{kind}[{index}]", container
