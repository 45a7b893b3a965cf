"""What users may write into the pods of their tasks, and whether that leads out of a container. Pure."""

from __future__ import annotations

from typing import Final

from deploy.operations.doctor.findings import Finding, ok, warning
from libs.cluster.config import ClusterConfig

PART: Final = "pods of users"
_REMEDY: Final = "set security.pod_spec to baseline; security.pod_fields and security.host_paths name exceptions"
_SAYS: Final = {
    "free": "may ask everything of a node, such as hostPath and privileged",
    "warn": "may ask everything of a node; what the Pod Security Standard baseline refuses is in the log of the api",
}


def check_pod_specs(cluster: ClusterConfig) -> list[Finding]:
    """Nothing where tasks are no pods."""
    if not cluster.resource_manager.is_kubernetes:
        return []
    mode = cluster.security.pod_spec
    if mode in _SAYS:
        return [warning(PART, _SAYS[mode], remedy=_REMEDY)]
    return [ok(PART, f"have to meet the Pod Security Standard {mode}")]
