"""Keeps pods off nodes that are disabled or excluded, and on those that they were given, whatever their user says; and
has the cluster prefer where the planner saw room, unless their user prefers other nodes.

Terms of a node selector are alternatives, so a restriction has to stand in each of them.
Source: docs/reference/kubernetes.md 3.10; docs/reference/scheduling.md 4.6;
https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#nodeselector-v1-core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.names import HOSTNAME, node_label
from services.launcher.backends.kubernetes.manifests.pod_fields import object_at, objects_at

Json = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST = 100
"""The largest weight that there is: of two preferred nodes neither is better."""
_MOST_BY_NAME = 16
"""Preferred nodes that have a term each."""


def placed(
    user_spec: Json,
    *,
    cluster_id: str,
    blocked_nodes: Sequence[str],
    nodes: Sequence[str] = (),
    preferred: Sequence[str] = (),
) -> Json:
    """The pod's ``affinity`` with our restrictions. ``user_spec`` is left unchanged. Raises InvalidRequest.

    nodes      the only ones that it may run on; () is all
    preferred  those on which it runs where there still is room
    """
    affinity = object_at(user_spec, "affinity", "spec")
    node_affinity = object_at(affinity, "nodeAffinity", "spec.affinity")
    required = object_at(node_affinity, _REQUIRED, "spec.affinity.nodeAffinity")
    terms = objects_at(required, "nodeSelectorTerms", f"spec.affinity.nodeAffinity.{_REQUIRED}")
    # A term without requirements matches no node; with ours in it, it would match nearly all.
    kept = [term for term in terms if term.get("matchExpressions") or term.get("matchFields")]
    if terms and not kept:
        return affinity
    restricted = [
        _restricted(term, cluster_id, blocked_nodes, node) for term in kept or [{}] for node in (*nodes,) or ("",)
    ]
    node_affinity[_REQUIRED] = {**required, "nodeSelectorTerms": restricted}
    if preferred and not node_affinity.get(_PREFERRED):
        node_affinity[_PREFERRED] = [{"weight": _MOST, "preference": one} for one in _preferences(preferred)]
    return {**affinity, "nodeAffinity": node_affinity}


def _preferences(nodes: Sequence[str]) -> list[Json]:
    if len(nodes) <= _MOST_BY_NAME:
        return [_only(node) for node in nodes]
    # Each pod of a gang has all of its nodes, and a field takes one value. Of the label, which nearly everywhere is the
    # name, one term takes all; elsewhere nothing is preferred. A name that is no value of a label would be refused.
    hosts = [node for node in nodes if label_value(node) == node]
    return [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hosts}]}] if hosts else []


def _only(node: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


def _restricted(term: Json, cluster_id: str, blocked_nodes: Sequence[str], own: str) -> Json:
    """``own`` is the only node that matches; "" is all."""
    disabled = {"key": node_label(cluster_id), "operator": "DoesNotExist"}
    expressions = objects_at(term, "matchExpressions")
    fields = objects_at(term, "matchFields")
    for node in dict.fromkeys(blocked_nodes):
        # The API server refuses more than one value in a requirement on a field.
        fields.append({"key": "metadata.name", "operator": "NotIn", "values": [node]})
    if own:
        fields.append({"key": "metadata.name", "operator": "In", "values": [own]})
    restricted = {
        **term,
        "matchExpressions": expressions if disabled in expressions else [*expressions, disabled],
    }
    return {**restricted, "matchFields": fields} if fields else restricted
