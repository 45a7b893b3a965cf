"""Where the values of PEDL's chart went, as the table "From PEDL" in docs/install-kubernetes.md has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deploy.operations.config.mistakes import Mistake

HERE: Final[Mapping[str, str]] = {
    "masterImage": "imageRegistry, detVersion",
    "agentImage": "imageRegistry, detVersion",
    "agent.enableCPUScheduling": "slotType, slotResourceRequests.cpu",
    "agent.env": "taskContainerDefaults.environmentVariables",
    "agent.resources": "launcher.resources",
    "agent.tolerations": "taskContainerDefaults.gpuPodSpec",
    "trialRunner.network": "taskContainerDefaults.networkMode",
    "trialRunner.uid": "security.defaultTask.uid",
    "trialRunner.gid": "security.defaultTask.gid",
    "imagePullPolicy": "masterImagePullPolicy",
    "resources": "masterCpuRequest, masterMemRequest, masterCpuLimit, masterMemLimit",
    "tolerations": "masterTolerations",
    "nodeSelector": "masterNodeSelector",
    "registry": "imagePullSecretName",
    "service.type": "masterService.type",
    "service.port": "masterPort",
    "service.externalIPs": "masterService.externalIPs",
    "service.nodePort": "masterService.nodePort",
    "service.clusterIP": "masterService.clusterIP",
    "service.loadBalancerIP": "masterService.loadBalancerIP",
    "service.annotations": "masterService.annotations",
    "service.loadBalancerSourceRanges": "loadBalancerSourceRanges",
    "ingress.tls": "tlsSecret, tls.termination",
    "postgresql.image": "defaultImages.postgreSQL",
    "postgresql.postgresqlPassword": "db.password",
    "postgresql.postgresqlDatabase": "db.name",
    "postgresql.service.port": "db.port",
    "postgresql.postgresqlExtendedConfig.maxConnections": "db.maxConnections",
    "postgresql.postgresqlExtendedConfig.sharedBuffers": "db.sharedBuffers",
    "postgresql.postgresqlInitdbArgs": "db.extraArgs",
    "postgresql.schedulerName": "db.schedulerName",
    "postgresql.resources": "db.cpuRequest, db.memRequest, db.cpuLimit, db.memLimit",
    "postgresql.persistence.enabled": "db.disablePVC",
    "postgresql.persistence.existingClaim": "db.existingClaim",
    "postgresql.persistence.storageClass": "db.storageClassName",
    "postgresql.persistence.size": "db.storageSize",
}
"""A value of PEDL's chart -> those of this one, some of which are of another form."""


def pedl_mistakes(path: str, value: Any) -> Iterator[Mistake]:
    """A mistake for each value of PEDL's chart at ``path`` or below it; none where the chart had no such value."""
    if path in HERE:
        yield Mistake("error", path, f"a value of PEDL's chart; here it is {HERE[path]}")
    elif isinstance(value, dict) and any(known.startswith(f"{path}.") for known in HERE):
        for name, each in value.items():
            below = f"{path}.{name}"
            found = list(pedl_mistakes(below, each))
            yield from found or [Mistake("error", below, "a value of PEDL's chart that has no counterpart; remove it")]
