"""Labels and annotations that users may not put on their pods, because others decide by them.

Services and network policies of the chart select pods by labels, and so do Kubernetes, its autoscalers and Pod
Security: a pod that bears them joins what it does not belong to. Pods of users that bear the label of a Service become
its endpoints. Source: https://kubernetes.io/docs/reference/labels-annotations-taints/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

ALLOWED: Final = (
    "sidecar.istio.io/inject",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "k8s.v1.cni.cncf.io/networks",
    "pod-group.scheduling.sigs.k8s.io/*",
)
"""What an administrator allows who does not say otherwise."""

_SELECTED: Final = frozenset({"app", "release", "component", "job-name", "controller-uid"})
"""Keys without a domain that selectors of the chart, or of Kubernetes, have."""
_OURS: Final = ("determined", "resolute")
_DOMAINS: Final = ("kubernetes.io", "k8s.io")


def reserved(pod: Mapping[str, Any], allowed: tuple[str, ...]) -> Iterator[str]:
    """The paths of labels and annotations of ``pod`` that are reserved, but for those that patterns allow."""
    metadata = pod.get("metadata")
    for field in ("labels", "annotations"):
        entries = metadata.get(field) if isinstance(metadata, dict) else None
        for key in entries if isinstance(entries, dict) else ():
            if is_reserved(str(key)) and not any(fnmatchcase(str(key), pattern) for pattern in allowed):
                yield f"metadata.{field}[{key}]"


def is_reserved(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    if not slash:
        return key in _SELECTED or key.startswith(_OURS)
    is_cluster = any(domain == each or domain.endswith(f".{each}") for each in _DOMAINS)
    return is_cluster or any(part.startswith(_OURS) for part in domain.split("."))
