"""Keys by which lists of a Pod are merged element by element; other lists are replaced.

Everything that is not in the table follows from its own kind: objects merge field by field, other lists are atomic
(the patch replaces them), which is right for tolerations, envFrom, command, args, capabilities, nodeSelectorTerms ...

Source: the patch strategy and patch merge key of each field in the Kubernetes API reference (core/v1 Pod and
meta/v1 ObjectMeta); docs/reference/kubernetes.md 6.2 lists the ones that users meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Schema: TypeAlias = "Mapping[str, Rule]"
Rule: TypeAlias = "Schema | KeyedList | ValueSet"


@dataclass(frozen=True)
class KeyedList:
    """A list of objects that are told apart by the field ``key``; the rules of ``item`` hold inside each."""

    key: str
    item: Schema


@dataclass(frozen=True)
class ValueSet:
    """A list of plain values that behaves like an ordered set."""


NO_RULES: Final[Schema] = {}

METADATA: Final[Schema] = {
    "finalizers": ValueSet(),
    "ownerReferences": KeyedList("uid", NO_RULES),
}
CONTAINER: Final[Schema] = {
    "env": KeyedList("name", NO_RULES),
    "ports": KeyedList("containerPort", NO_RULES),
    "volumeMounts": KeyedList("mountPath", NO_RULES),
    "volumeDevices": KeyedList("devicePath", NO_RULES),
}
VOLUME: Final[Schema] = {
    "ephemeral": {"volumeClaimTemplate": {"metadata": METADATA}},
}
POD: Final[Schema] = {
    "metadata": METADATA,
    "spec": {
        "containers": KeyedList("name", CONTAINER),
        "initContainers": KeyedList("name", CONTAINER),
        "ephemeralContainers": KeyedList("name", CONTAINER),
        "volumes": KeyedList("name", VOLUME),
        "imagePullSecrets": KeyedList("name", NO_RULES),
        "schedulingGates": KeyedList("name", NO_RULES),
        "resourceClaims": KeyedList("name", NO_RULES),
        "hostAliases": KeyedList("ip", NO_RULES),
        "topologySpreadConstraints": KeyedList("topologyKey", NO_RULES),
    },
    "status": {
        "conditions": KeyedList("type", NO_RULES),
        "hostIPs": KeyedList("ip", NO_RULES),
        "podIPs": KeyedList("ip", NO_RULES),
    },
}


def inside(rule: Rule | None) -> Schema:
    """The rules for the fields of an object for which ``rule`` holds; none where a list was expected."""
    return NO_RULES if rule is None or isinstance(rule, KeyedList | ValueSet) else rule
