"""A real API server takes the objects of other projects that the chart renders, by the definitions of these projects.

The definitions are installed in API groups of the test's own: a cluster may have other versions of them, or other tests
may have put something simpler in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest
import yaml

from tests.harness.go_modules import module_folder
from tests.harness.helm import Manifest
from tests.harness.kubectl import Kubectl
from tests.integration.helm.conftest import VALUES, Rendered
from tests.integration.helm.test_on_cluster import FOREIGN, in_namespace

pytestmark = pytest.mark.cluster


class Project(NamedTuple):
    module: str
    """With the version: none of the newest, which would let pass what others do not know yet."""
    folder: str
    """With a file ``GROUP_PLURAL.yaml`` for each kind."""
    plurals: dict[str, str]
    """By kind."""


PROJECTS: Final = {
    "gateway.networking.k8s.io": Project(
        "sigs.k8s.io/gateway-api@v1.2.1", "config/crd/standard", {"Gateway": "gateways", "HTTPRoute": "httproutes"}
    ),
    "monitoring.coreos.com": Project(
        "github.com/prometheus-operator/prometheus-operator@v0.81.0",
        "example/prometheus-operator-crd",
        {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"},
    ),
    "keda.sh": Project("github.com/kedacore/keda/v2@v2.16.1", "config/crd/bases", {"ScaledObject": "scaledobjects"}),
    "snapshot.storage.k8s.io": Project(
        "github.com/kubernetes-csi/external-snapshotter/client/v8@v8.2.0",
        "config/crd",
        {"VolumeSnapshot": "volumesnapshots", "VolumeSnapshotClass": "volumesnapshotclasses"},
    ),
}
NOT_PUBLISHED: Final = {"route.openshift.io"}
"""Served by a program of its own there, and not by a definition."""
KINDS: Final = [(group, kind) for group, project in PROJECTS.items() for kind in project.plurals]


def definition(group: str, kind: str, suffix: str) -> Manifest:
    """What the project defines, in a group that ends in ``suffix``."""
    project = PROJECTS[group]
    plural = project.plurals[kind]
    published: Any = yaml.safe_load(
        (module_folder(project.module) / project.folder / f"{group}_{plural}.yaml").read_text()
    )
    spec = {**published["spec"], "group": group + suffix}
    return {**published, "metadata": {"name": f"{plural}.{group}{suffix}"}, "spec": spec}


@pytest.fixture(scope="module")
def suffix(restricted: Kubectl) -> Iterator[str]:
    """Of the groups in which the cluster has every kind; they are gone afterwards."""
    suffix = f".{uuid4().hex[:8]}.example.com"
    definitions = [definition(group, kind, suffix) for group, kind in KINDS]
    names = [f"customresourcedefinition/{each['metadata']['name']}" for each in definitions]
    cluster = Kubectl(restricted.kubeconfig)
    try:
        cluster("create", "-f", "-", given=yaml.safe_dump_all(definitions))
        cluster("wait", "--for=condition=Established", "--timeout=60s", *names)
        yield suffix
    finally:
        cluster("delete", "--ignore-not-found", *names)


def rendered_objects(group: str, kind: str, rendered: Rendered) -> Iterator[Manifest]:
    """From every values file."""
    for path in sorted(VALUES.glob("*.yaml")):
        for found in rendered(path.stem).manifests:
            if (found["apiVersion"].split("/")[0], found["kind"]) == (group, kind):
                yield found


def made_for(manifest: Manifest, suffix: str, namespace: str) -> Manifest:
    moved = in_namespace(manifest, namespace)
    group, version = moved["apiVersion"].split("/")
    return {**moved, "apiVersion": f"{group}{suffix}/{version}"}


@pytest.mark.parametrize(("group", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_the_server_takes_every_object(
    group: str, kind: str, rendered: Rendered, restricted: Kubectl, suffix: str
) -> None:
    objects = [made_for(found, suffix, restricted.namespace) for found in rendered_objects(group, kind, rendered)]
    assert objects
    cluster = Kubectl(restricted.kubeconfig)
    # An object with a field that its kind does not have is refused.
    given = yaml.safe_dump_all(objects)
    said = cluster("create", "--dry-run=server", "--validate=strict", "-f", "-", "-o", "name", given=given)
    assert len(said.splitlines()) == len(objects)


def test_it_looks_at_every_field(rendered: Rendered, restricted: Kubectl, suffix: str) -> None:
    scaled = made_for(next(rendered_objects("keda.sh", "ScaledObject", rendered)), suffix, restricted.namespace)
    create = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    for wrong, says in (({"maxReplicas": 3}, 'unknown field "spec.maxReplicas"'), ({"triggers": 1}, "spec.triggers")):
        changed = deepcopy(scaled)
        changed["spec"] |= wrong
        with pytest.raises(AssertionError, match=says):
            Kubectl(restricted.kubeconfig)(*create, given=yaml.safe_dump(changed))


def test_no_kind_of_others_is_left_out(rendered: Rendered) -> None:
    kinds = {
        (found["apiVersion"].split("/")[0], found["kind"])
        for path in VALUES.glob("*.yaml")
        for found in rendered(path.stem).manifests
    }
    assert {(group, kind) for group, kind in kinds if group in FOREIGN - NOT_PUBLISHED} == set(KINDS)
