"""Two releases in one cluster share what has one name there; it outlives each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.harness.helm import CHART, render, run_helm
from tests.harness.kubectl import Kubectl
from tests.integration.helm.conftest import BESIDE, VALUES, Rendered, helm

SHARED: Final = (
    ("PriorityClass", "determined-system-priority"),
    ("PriorityClass", "determined-medium-priority"),
    ("Deployment", "coscheduler"),
    ("ConfigMap", "scheduler-config"),
    ("ServiceAccount", "coscheduler"),
    ("ClusterRole", "coscheduler-pod-permissions"),
    ("RoleBinding", "coscheduler-extention-apiserver"),
    ("ClusterRoleBinding", "coscheduler-as-kube-scheduler"),
    ("ClusterRoleBinding", "coscheduler-as-volume-scheduler"),
)
OPTIONS: Final = ("--set", "maxSlotsPerPod=1,defaultScheduler=coscheduler")


def test_what_has_one_name_in_a_cluster_stays_when_a_release_is_uninstalled(rendered: Rendered) -> None:
    release = rendered("coscheduler")
    for kind, name in SHARED:
        assert release.get(kind, name)["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_a_release_uses_what_others_have_made(rendered: Rendered) -> None:
    release = rendered("shared_objects_of_others")
    assert [each for each in SHARED if release.find(*each) is not None] == []
    pod = release.get("Deployment", "resolute-scheduler")["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "determined-system-priority"
    assert "default_scheduler: coscheduler" in release.secret("determined-master-config", "master.yaml")
    # Lets the scheduler change pods of this namespace, and is of this release.
    assert release.get("RoleBinding", "coscheduler-pod-role")["metadata"]["namespace"] == release.namespace


def test_a_release_makes_them_where_it_is_told_to() -> None:
    told = render(VALUES / "coscheduler.yaml", *BESIDE, "--set", "priorityClasses.create=true,coscheduler.create=true")
    assert [each for each in SHARED if told.find(*each) is None] == []


@pytest.fixture
def two_namespaces(restricted: Kubectl) -> Iterator[tuple[Kubectl, Kubectl]]:
    cluster = Kubectl(restricted.kubeconfig)
    if cluster("get", "priorityclass", "-o", "name").count("determined-"):
        pytest.skip("the cluster has the priority classes of an installation")
    other = Kubectl(restricted.kubeconfig, f"{restricted.namespace}-two")
    cluster("create", "namespace", other.namespace)
    try:
        yield restricted, other
    finally:
        cluster("delete", "namespace", other.namespace, "--wait=false")
        for kind, name in SHARED:
            cluster("-n", "kube-system", "delete", kind.lower(), name, "--ignore-not-found", "--wait=false")


def there(cluster: Kubectl) -> list[str]:
    return [name for kind, name in SHARED if cluster("-n", "kube-system", "get", kind.lower(), name, "-o", "name")]


@pytest.mark.cluster
def test_a_second_release_uses_what_the_first_has_made_and_neither_takes_it_away(
    two_namespaces: tuple[Kubectl, Kubectl],
) -> None:
    one, two = two_namespaces
    cluster = Kubectl(one.kubeconfig)
    everything = [name for _, name in SHARED]
    of_one, of_two = ((*OPTIONS, "--set", f"tasks.namespace={each.namespace}") for each in (one, two))

    # Nobody has made them, and this release may not: said before anything is there.
    refused = run_helm(
        *("install", "first", str(CHART), *of_one, "--set", "priorityClasses.create=false", "--no-hooks"),
        *("-n", one.namespace, "--kubeconfig", str(one.kubeconfig)),
    )
    assert "the cluster has no PriorityClass determined-medium-priority: make it" in refused.stderr
    assert one("get", "secret", "-l", "release=first", "-o", "name") == ""

    assert "used as it is" not in helm(one, "install", "first", str(CHART), *of_one)
    said = helm(two, "install", "second", str(CHART), *of_two)
    owner = f"of the release first in {one.namespace}, and is used as it is"
    assert f"PriorityClass determined-system-priority: it is {owner}" in said
    assert f"Deployment coscheduler in kube-system: it is {owner}" in said
    helm(one, "upgrade", "first", str(CHART), *of_one, "--set", "api.replicas=1")
    helm(two, "upgrade", "second", str(CHART), *of_two, "--set", "api.replicas=1")

    helm(two, "uninstall", "second")
    assert there(cluster) == everything
    helm(two, "install", "second", str(CHART), *of_two)
    helm(one, "uninstall", "first")
    assert there(cluster) == everything
    # What an uninstalled release has left is used by others, and is its own again once it is back.
    helm(two, "upgrade", "second", str(CHART), *of_two)
    helm(one, "install", "first", str(CHART), *of_one)
    helm(one, "uninstall", "first")
    helm(two, "uninstall", "second")
    assert there(cluster) == everything
