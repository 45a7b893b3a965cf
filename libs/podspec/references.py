"""References of a pod to other objects of its namespace: whose contents it asks for, and as whom it acts.

The pod is searched wherever a field is named so, not only where Kubernetes has the field today: a volume type or a
container that this release does not know is found too. Source: core/v1 PodSpec in the Kubernetes API reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

SECRET: Final = "Secret"  # noqa: S105  a kind of object
CONFIG_MAP: Final = "ConfigMap"
CLAIM: Final = "PersistentVolumeClaim"
SERVICE_ACCOUNT: Final = "ServiceAccount"


class Reference(NamedTuple):
    """One object of the namespace that a pod refers to."""

    path: str
    """Of the field, relative to the pod: ``spec.volumes[0].secret.secretName``."""
    kind: str
    name: str
    """Empty where the field does not say it: it is then said by what the pod is merged with."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


_NAMES: Final = {
    "secretName": SECRET,
    "claimName": CLAIM,
    "serviceAccountName": SERVICE_ACCOUNT,
    "serviceAccount": SERVICE_ACCOUNT,
    "resourceClaimName": "ResourceClaim",
    "resourceClaimTemplateName": "ResourceClaimTemplate",
}
"""Fields whose value is the name."""
_SOURCES: Final = {
    "secret": (SECRET, ("secretName", "name")),
    "configMap": (CONFIG_MAP, ("name",)),
    "configMapRef": (CONFIG_MAP, ("name",)),
    "configMapKeyRef": (CONFIG_MAP, ("name",)),
    "secretKeyRef": (SECRET, ("name",)),
    "persistentVolumeClaim": (CLAIM, ("claimName",)),
}
"""Fields whose value is an object that has the name in one of some fields."""
_SECRET_REFERENCE: Final = re.compile(r"(secret|.*Secret)Ref")
_DATA_SOURCES: Final = ("dataSource", "dataSourceRef")
_TEXT_ONLY: Final = frozenset({"metadata", "nodeSelector", "matchLabels", "labels", "annotations"})
"""Maps whose keys are the user's own words."""

_MADE_FOR_TASKS: Final = re.compile(r"det-[0-9a-f]{8}-.*|.*-[0-9a-f]{20}(-registry)?")


def references(pod: Mapping[str, Any]) -> list[Reference]:
    """Everything that ``pod`` refers to, in the order of the pod."""
    return list(_found(pod.get("spec"), "spec", str(_object(pod.get("spec")).get("serviceAccountName") or "default")))


def is_made_for_tasks(reference: Reference) -> bool:
    """Whether a launcher names the Secrets and ConfigMaps of tasks like that: those of others hold their tokens."""
    return reference.kind in (SECRET, CONFIG_MAP) and _MADE_FOR_TASKS.fullmatch(reference.name) is not None


def is_allowed(reference: Reference, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns, as in ``Secret/registry-*``, is for this object; none is for one without a name."""
    return bool(reference.name) and any(fnmatchcase(str(reference), pattern) for pattern in patterns)


def _found(value: Any, path: str, account: str) -> Iterator[Reference]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _found(item, f"{path}[{index}]", account)
    for field, inner in value.items() if isinstance(value, dict) else ():
        place = f"{path}.{field}"
        if field in _TEXT_ONLY or inner is None:
            continue
        if field == "serviceAccountToken":
            yield Reference(place, SERVICE_ACCOUNT, account)
            continue
        named = list(_named(str(field), inner, place))
        yield from named or _found(inner, place, account)


def _named(field: str, value: Any, place: str) -> Iterator[Reference]:
    """The objects that a field refers to, if it is one that refers to any."""
    if field == "imagePullSecrets" and isinstance(value, list):
        for index, item in enumerate(value):
            yield Reference(f"{place}[{index}].name", SECRET, _text(item, "name"))
    elif field in _NAMES and not isinstance(value, dict | list):
        yield Reference(place, _NAMES[field], str(value))
    elif isinstance(value, dict) and field in _SOURCES:
        kind, names = _SOURCES[field]
        given = [each for each in names if value.get(each)] or [names[0]]
        for each in given:
            yield Reference(f"{place}.{each}", kind, _text(value, each))
    elif isinstance(value, dict) and _SECRET_REFERENCE.fullmatch(field):
        yield Reference(f"{place}.name", SECRET, _text(value, "name"))
    elif isinstance(value, dict) and field in _DATA_SOURCES:
        yield Reference(f"{place}.name", _text(value, "kind") or CLAIM, _text(value, "name"))


def _text(holder: Any, field: str) -> str:
    return str(_object(holder).get(field) or "")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
