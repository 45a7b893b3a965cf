"""A placeholder as a pod (pure).

It asks for what a pod of the task would, at a priority below that of everything else, and for nodes that were not there
before. Autoscalers leave its node alone meanwhile. Source: docs/reference/scheduling.md 16 (B9);
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import Any, Final

from msgspec import Struct

from libs.events.orders import PlaceholderOrder
from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.names import (
    ALLOCATION,
    CLUSTER_LABEL,
    HOSTNAME,
    PLACEHOLDER_LABEL,
    launcher_id,
    node_label,
    system_name,
)

Json = dict[str, Any]

KNOWN_NODE_LABEL: Final = "resolute/known-node"
"""Of nodes that were there before a placeholder was, where names of hosts must not be asked for."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_OF_AUTOSCALERS: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}


class PlaceholderTraits(Struct, frozen=True, kw_only=True):
    pool: str
    cluster_id: str
    image: str

    @property
    def launcher(self) -> str:
        return launcher_id(self.cluster_id, self.pool)


def names(order: PlaceholderOrder, traits: PlaceholderTraits) -> list[str]:
    """Names of the pods of an order; the same whenever they are asked for."""
    which = hashlib.sha256(order.allocation.encode()).hexdigest()[:8]
    return [system_name(traits.cluster_id, traits.pool, f"room-{which}-{number}") for number in range(order.pods)]


def placeholder_pod(
    order: PlaceholderOrder,
    traits: PlaceholderTraits,
    *,
    name: str,
    hosts: Sequence[str] | None,
    priority_class: str | None,
    now: datetime,
) -> Json:
    """
    hosts           names of hosts of the nodes that it must not be on; None where these have a label instead
    priority_class  None where the cluster has none for it
    """
    amounts = {resource: _quantity(resource, amount) for resource, amount in order.requests.items() if amount}
    limits = {resource: amount for resource, amount in amounts.items() if _is_never_overcommitted(resource)}
    container = {
        "name": "placeholder",
        "image": traits.image,
        "resources": {"requests": amounts, "limits": limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec: Json = {
        "containers": [container],
        "nodeSelector": order.node_selector,
        "tolerations": list(order.tolerations),
        "affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": _terms(order, traits, hosts)}}},
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        # Counted from when it is on a node, so that without any launcher, too, it gives the node back in the end.
        "activeDeadlineSeconds": max(1, ceil((order.gives_up_at - now).total_seconds())),
    }
    if priority_class is not None:
        spec["priorityClassName"] = priority_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {PLACEHOLDER_LABEL: traits.launcher, CLUSTER_LABEL: label_value(traits.cluster_id)},
            "annotations": {**_OF_AUTOSCALERS, ALLOCATION: order.allocation},
        },
        "spec": spec,
    }


def _terms(order: PlaceholderOrder, traits: PlaceholderTraits, hosts: Sequence[str] | None) -> list[Json]:
    """The alternatives of the order, in each of which is said which nodes it must not be."""
    ours: list[Json] = [{"key": node_label(traits.cluster_id), "operator": "DoesNotExist"}]
    if hosts is None:
        ours.append({"key": KNOWN_NODE_LABEL, "operator": "DoesNotExist"})
    elif hosts:
        ours.append({"key": HOSTNAME, "operator": "NotIn", "values": sorted(set(hosts))})
    terms: Sequence[Mapping[str, Any]] = [{}] if order.affinity_terms is None else order.affinity_terms
    return [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *ours]} for term in terms]


def _is_never_overcommitted(resource: str) -> bool:
    """Whether Kubernetes wants its request and its limit to be the same: of extended resources and of huge pages."""
    return "/" in resource or resource.startswith("hugepages-")


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)
