"""Pods of the chart keep to the restricted Pod Security Standard, without a cluster that would say so.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from typing import Final

from tests.integration.helm.conftest import Rendered

VOLUMES: Final = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
ON_THE_NODE: Final = "storage_shared"
"""Mounts a directory of the node in the api, which is what the value is for."""


def test_pods_are_restricted_and_cannot_write_to_their_images(any_values: str, rendered: Rendered) -> None:
    for name, template in rendered(any_values).pods():
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
        kinds = {kind for volume in pod.get("volumes", []) for kind in volume if kind != "name"}
        assert kinds - VOLUMES == ({"hostPath"} if any_values == ON_THE_NODE and "master" in name else set())


def test_only_launchers_talk_to_the_cluster(any_values: str, rendered: Rendered) -> None:
    talks = [
        name
        for name, template in rendered(any_values).pods()
        if template["spec"].get("automountServiceAccountToken", True)
    ]
    assert [
        name for name in talks if not name.startswith(("Deployment/resolute-launcher-", "Deployment/coscheduler"))
    ] == []


def test_every_service_says_when_it_is_alive_and_ready(any_values: str, rendered: Rendered) -> None:
    for name, template in rendered(any_values).pods():
        container = template["spec"]["containers"][0]
        if name.startswith(("Job/", "Pod/")):
            continue
        assert {"livenessProbe", "readinessProbe"} <= container.keys(), name
        if "resolute-nats" not in name and "determined-db" not in name and "coscheduler" not in name:
            assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "status"}
            assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "status"}
            # Longer than it takes to replace the pod of the database, which takes the readiness of all pods at once.
            assert container["readinessProbe"]["periodSeconds"] * container["readinessProbe"]["failureThreshold"] >= 60
            assert {"name": "status", "containerPort": 9090} in container["ports"]
