"""A real API server takes everything that the chart renders, in a namespace of the restricted Pod Security Standard."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import Manifest, Release
from tests.harness.kubectl import Kubectl
from tests.integration.helm.conftest import Rendered

pytestmark = pytest.mark.cluster

FOREIGN: Final = {
    "gateway.networking.k8s.io",
    "keda.sh",
    "monitoring.coreos.com",
    "route.openshift.io",
    "snapshot.storage.k8s.io",
}
"""API groups that a bare cluster does not serve."""
ON_THE_NODE: Final = "storage_shared"
"""Mounts a directory of the node, which no restricted pod may."""


def in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    """The object as it would be in this namespace, which exists; nothing is made, so names cannot collide."""
    moved = deepcopy(manifest)
    if moved["metadata"].get("namespace") not in (None, "kube-system"):
        moved["metadata"]["namespace"] = namespace
    if moved["kind"] == "Service" and moved["spec"].get("clusterIP") != "None":
        moved["spec"].pop("clusterIP", None)  # whichever addresses this cluster has
    return moved


def pods_of(release: Release, namespace: str) -> Iterator[Manifest]:
    """Pods as controllers would make them, apart from what has to exist before: accounts and priority classes."""
    for number, (_, template) in enumerate(release.pods()):
        spec: dict[str, Any] = {**template["spec"], "restartPolicy": template["spec"].get("restartPolicy", "Always")}
        spec.pop("priorityClassName", None)
        spec.pop("serviceAccountName", None)
        # The claims of a StatefulSet become volumes of its pods.
        mounted = {mount["name"] for container in spec["containers"] for mount in container.get("volumeMounts", [])}
        missing = mounted - {volume["name"] for volume in spec.get("volumes", [])}
        claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(missing)]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": namespace, "labels": template["metadata"]["labels"]},
            "spec": {**spec, "volumes": [*spec.get("volumes", []), *claims]},
        }


def test_the_server_takes_every_object_and_restricted_pods(
    any_values: str, rendered: Rendered, restricted: Kubectl
) -> None:
    release = rendered(any_values)
    objects = [
        in_namespace(found, restricted.namespace)
        for found in release.manifests
        if found["apiVersion"].split("/")[0] not in FOREIGN
    ]
    pods = [] if any_values == ON_THE_NODE else list(pods_of(release, restricted.namespace))
    # kubectl wants all of one call to be in its namespace, unless it is told none.
    cluster = Kubectl(restricted.kubeconfig)
    said = cluster("create", "--dry-run=server", "-f", "-", "-o", "name", given=yaml.safe_dump_all([*objects, *pods]))
    assert len(said.splitlines()) == len(objects) + len(pods)


def test_pods_that_want_more_are_refused_there(rendered: Rendered, restricted: Kubectl) -> None:
    """The namespace does look."""
    pods = list(pods_of(rendered(ON_THE_NODE), restricted.namespace))
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        Kubectl(restricted.kubeconfig)("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(pods))
