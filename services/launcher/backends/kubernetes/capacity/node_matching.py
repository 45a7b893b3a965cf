"""Matches nodes with the pods of a pool: which pods can run where.

Source: docs/reference/kubernetes.md 13.2; docs/reference/scheduling.md 11.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from libs.cluster.config import ClusterConfig
from services.launcher.backends.kubernetes.capacity.node_parts import DELETION_CANDIDATE
from services.launcher.backends.kubernetes.client.objects import Node, Taint

Json = Mapping[str, Any]

_ALWAYS: Final[tuple[Json, ...]] = ({"key": DELETION_CANDIDATE, "operator": "Exists", "effect": "PreferNoSchedule"},)
_GPU: Final[tuple[Json, ...]] = (
    {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"},
    {"key": "amd.com/gpu", "operator": "Equal", "value": "present"},
)
_PASSING: Final = "node.kubernetes.io/"
"""Taints that the cluster sets and takes away by itself: not ready, under pressure, cordoned."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class NodeRequirements(Struct, frozen=True, kw_only=True):
    """What pods of a pool say about nodes, for nodes of one kind."""

    tolerations: tuple[Json, ...] = ()
    node_selector: Mapping[str, str] | None = None
    terms: tuple[Json, ...] | None = None
    """Of the required node affinity: alternatives."""


class PoolRequirements(Struct, frozen=True, kw_only=True):
    gpu: NodeRequirements
    cpu: NodeRequirements


def pool_requirements(cluster: ClusterConfig, pool: str) -> PoolRequirements:
    """What the pool's default pod specs ask of nodes with GPUs and of others."""
    own = cluster.pool(pool)
    defaults = own.own_defaults if own is not None else None
    gpu = defaults.gpu_pod_spec if defaults is not None else None
    cpu = defaults.cpu_pod_spec if defaults is not None else None
    shared = cluster.task_container_defaults
    is_single = len(cluster.resource_pools) == 1 and gpu is None and cpu is None
    return PoolRequirements(
        gpu=_requirements_of(shared.gpu_pod_spec, gpu if gpu is not None else cpu, is_single=is_single),
        cpu=_requirements_of(shared.cpu_pod_spec, cpu, is_single=is_single),
    )


def matches(requirements: NodeRequirements, node: Node) -> bool:
    """Whether a pod with these requirements may run on the node, as far as what administrators set goes."""
    blocking = [
        taint for taint in node.spec.taints if taint.effect != "PreferNoSchedule" and not taint.key.startswith(_PASSING)
    ]
    if not all(any(_tolerates(each, taint) for each in requirements.tolerations) for taint in blocking):
        return False
    if requirements.node_selector is not None and not _selects(requirements.node_selector, node):
        return False
    return requirements.terms is None or any(_term_matches(term, node) for term in requirements.terms)


def _requirements_of(shared: Json | None, own: Json | None, *, is_single: bool) -> NodeRequirements:
    spec = _spec(own)
    shared_spec = _spec(shared)
    tolerations = [*_ALWAYS, *_items(spec.get("tolerations")), *_items(shared_spec.get("tolerations"))]
    if is_single:
        tolerations += _GPU
        spec = shared_spec
    selector = spec.get("nodeSelector")
    affinity = _object(_object(_object(spec.get("affinity")).get("nodeAffinity")).get(_REQUIRED))
    terms = affinity.get("nodeSelectorTerms")
    return NodeRequirements(
        tolerations=tuple(tolerations),
        node_selector=selector if isinstance(selector, dict) else None,
        terms=tuple(_items(terms)) if terms else None,
    )


def _tolerates(toleration: Json, taint: Taint) -> bool:
    """https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"""
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    key = toleration.get("key")
    if toleration.get("operator", "Equal") == "Exists":
        return not key or key == taint.key
    return bool(key == taint.key and str(toleration.get("value") or "") == taint.value)


def _selects(selector: Mapping[str, str], node: Node) -> bool:
    """Values may be alternatives, separated by commas; a selector that is there and empty selects nothing."""
    labels = node.metadata.labels
    return bool(selector) and all(labels.get(key) in str(value).split(",") for key, value in selector.items())


def _term_matches(term: Json, node: Node) -> bool:
    labels = node.metadata.labels
    fields = {"metadata.name": node.metadata.name}
    expressions, on_fields = _items(term.get("matchExpressions")), _items(term.get("matchFields"))
    if not expressions and not on_fields:
        return False
    return all(_meets(each, labels) for each in expressions) and all(_meets(each, fields) for each in on_fields)


def _meets(requirement: Json, values: Mapping[str, str]) -> bool:
    value = values.get(str(requirement.get("key")))
    wanted = [str(each) for each in requirement.get("values") or ()]
    match requirement.get("operator"):
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, wanted)
        case _:
            return False


def _compares(operator: str, value: str | None, wanted: list[str]) -> bool:
    try:
        left, right = int(value or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def _spec(pod: Json | None) -> Json:
    return _object(_object(pod).get("spec"))


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> Iterable[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
