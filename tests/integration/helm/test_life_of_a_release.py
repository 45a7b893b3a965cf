"""A release on a cluster: what an upgrade keeps, what its launchers may do, what uninstalling leaves.

Its pods are not looked at; images need not be there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.helm import CHART
from tests.harness.kubectl import Kubectl
from tests.harness.waiting import wait_until
from tests.integration.helm.conftest import helm

pytestmark = pytest.mark.cluster

RELEASE = "life"
SECRET = f"resolute-generated-{RELEASE}"


def of_tasks(kubectl: Kubectl) -> str:
    """The namespace that the chart makes for tasks of a new release."""
    return f"{kubectl.namespace}-{RELEASE}-tasks"


@pytest.fixture(scope="module")
def values(restricted: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pools, one of which has a namespace of its own; nothing in the cluster that has one name."""
    other = f"{restricted.namespace}-pool"
    path: Path = tmp_path_factory.mktemp("values") / "values.yaml"
    pools = [{"pool_name": "here"}, {"pool_name": "there", "kubernetes_namespace": other}]
    path.write_text(yaml.safe_dump({"maxSlotsPerPod": 1, "resourcePools": pools, "createNonNamespacedObjects": False}))
    return path


@pytest.fixture(scope="module")
def installed(restricted: Kubectl, values: Path) -> Iterator[Kubectl]:
    cluster = Kubectl(restricted.kubeconfig)
    cluster("create", "namespace", f"{restricted.namespace}-pool")
    try:
        helm(restricted, "install", RELEASE, str(CHART), "-f", str(values))
        yield restricted
        helm(restricted, "uninstall", RELEASE)
    finally:
        made = (f"{restricted.namespace}-pool", of_tasks(restricted))
        cluster("delete", "namespace", *made, "--wait=false", "--ignore-not-found")


def generated(kubectl: Kubectl) -> str:
    return kubectl("get", "secret", f"resolute-generated-{RELEASE}", "-o", "jsonpath={.data}")


def may(kubectl: Kubectl, pool: str, verb: str, resource: str, namespace: str) -> bool:
    account = f"system:serviceaccount:{kubectl.namespace}:resolute-launcher-{pool}-{RELEASE}"
    return (
        Kubectl(kubectl.kubeconfig)
        .shell(f"kubectl auth can-i {verb} {resource} -n {namespace} --as={account} || true")
        .strip()
        == "yes"
    )


def test_each_launcher_may_work_in_the_namespace_of_its_pool_only(installed: Kubectl) -> None:
    here, there = of_tasks(installed), f"{installed.namespace}-pool"
    for pool, own, foreign in (("here", here, there), ("there", there, here)):
        assert may(installed, pool, "create", "jobs", own)
        for verb, resource in (("create", "jobs"), ("delete", "pods"), ("create", "secrets"), ("get", "configmaps")):
            assert not may(installed, pool, verb, resource, foreign)
        assert not may(installed, pool, "get", "secrets", own)
        assert not may(installed, pool, "create", "jobs", installed.namespace)


def test_tasks_of_a_new_release_get_a_namespace_in_which_nothing_of_it_is(installed: Kubectl, values: Path) -> None:
    tasks = Kubectl(installed.kubeconfig, of_tasks(installed))
    assert tasks.names("deployments,statefulsets,services,secrets,persistentvolumeclaims", "release") == set()
    (quota,) = tasks.items("resourcequotas", f"release={RELEASE}")
    assert all(name.startswith("count/") for name in quota["spec"]["hard"])
    assert "WARNING" not in helm(installed, "upgrade", RELEASE, str(CHART), "-f", str(values))
    assert launcher(installed, "RESOLUTE_KUBERNETES__TASK_NETWORK__POLICIES") == "true"


def test_a_launcher_works_without_rights_in_the_cluster(installed: Kubectl, values: Path) -> None:
    upgrade = ("upgrade", RELEASE, str(CHART), "-f", str(values))
    cluster_wide = (("list", "nodes"), ("list", "pods"), ("create", "priorityclasses"))
    assert all(may(installed, "here", verb, resource, "default") for verb, resource in cluster_wide)
    helm(installed, *upgrade, "--set", "launcher.rights.cluster=false,launcher.assumedSlots=3")
    assert not any(may(installed, "here", verb, resource, "default") for verb, resource in cluster_wide)
    assert may(installed, "here", "create", "jobs", of_tasks(installed))
    assert launcher(installed, "RESOLUTE_KUBERNETES__PRIORITY_CLASSES") == "off"
    assert launcher(installed, "RESOLUTE_KUBERNETES__ASSUMED_SLOTS") == "3"
    helm(installed, *upgrade)


def launcher(kubectl: Kubectl, variable: str) -> str:
    """What the launcher of the pool without a namespace of its own is told."""
    path = f"{{.spec.template.spec.containers[0].env[?(@.name=='{variable}')].value}}"
    return kubectl("get", "deployment", f"resolute-launcher-here-{RELEASE}", "-o", f"jsonpath={path}")


def test_a_release_of_before_keeps_its_namespace_until_it_is_moved(installed: Kubectl, values: Path) -> None:
    """It is told so at each upgrade; then launchers have rights in both until the old one is empty."""
    old, new = installed.namespace, of_tasks(installed)
    upgrade = ("upgrade", RELEASE, str(CHART), "-f", str(values))
    gone = [{"op": "remove", "path": f"/data/{key}"} for key in ("since", "tasks-namespace", "tasks-former-namespaces")]
    installed("patch", "secret", SECRET, "--type=json", "-p", json.dumps(gone))
    for _ in range(2):
        said = helm(installed, *upgrade)
        assert f"WARNING: tasks run in {old}, beside the services" in said
        assert "docs/move-tasks.md" in said
    assert may(installed, "here", "create", "jobs", old)
    assert launcher(installed, "RESOLUTE_KUBERNETES__TASK_NETWORK__POLICIES") == ""
    metrics = installed(
        "get", "networkpolicy", f"resolute-scheduler-{RELEASE}", "-o", "jsonpath={.spec.ingress[0].from}"
    )
    assert metrics == '[{"namespaceSelector":{}}]'

    moved = (*upgrade, "--set", f"tasks.namespace={new}")
    assert f"Those that began in {old} go on there" in helm(installed, *moved)
    assert may(installed, "here", "create", "jobs", old)
    assert may(installed, "here", "create", "jobs", new)
    assert launcher(installed, "RESOLUTE_KUBERNETES__FORMER_NAMESPACES") == f'["{old}"]'
    installed.apply(job_of(installed))
    helm(installed, *moved)
    assert may(installed, "here", "create", "jobs", old)
    installed("delete", "job", "left")
    assert "go on there" not in helm(installed, *moved)
    assert not may(installed, "here", "create", "jobs", old)
    # What is noted counts: the value may be taken away again.
    helm(installed, *upgrade)
    assert may(installed, "here", "create", "jobs", new)


def job_of(kubectl: Kubectl) -> dict[str, Any]:
    """One that a task of this installation has left; it makes no pods."""
    cluster_id = kubectl("get", "secret", SECRET, "-o", 'go-template={{index .data "cluster-id" | base64decode}}')
    container = {"name": "a", "image": "a"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "left", "labels": {"resolute/cluster-id": cluster_id}},
        "spec": {"parallelism": 0, "template": template},
    }


def test_passwords_and_the_id_are_kept(installed: Kubectl, values: Path) -> None:
    """Over an upgrade, and when a release is installed again where one was uninstalled."""
    before = generated(installed)
    helm(installed, "upgrade", RELEASE, str(CHART), "-f", str(values), "--set", "api.replicas=1")
    assert generated(installed) == before
    helm(installed, "uninstall", RELEASE)
    kept = installed("get", "secret,persistentvolumeclaim", "-l", f"release={RELEASE}", "-o", "name").splitlines()
    assert f"secret/resolute-generated-{RELEASE}" in kept
    assert f"persistentvolumeclaim/determined-db-pvc-{RELEASE}" in kept
    helm(installed, "install", RELEASE, str(CHART), "-f", str(values))
    assert generated(installed) == before


def test_the_notes_say_what_to_do_for_a_bus_of_three_servers(installed: Kubectl, values: Path) -> None:
    upgrade = ("upgrade", RELEASE, str(CHART), "-f", str(values), "--set")
    server = f"resolute-nats-{RELEASE}-0"
    command = f"kubectl -n {installed.namespace} delete pod {server}"
    assert command not in helm(installed, *upgrade, "nats.replicas=1")
    assert command in helm(installed, *upgrade, "nats.replicas=3")
    assert command not in helm(installed, *upgrade, "nats.replicas=3")
    # The pod of the first server is there under this name.
    wait_until(lambda: server in installed.names("pods", f"release={RELEASE}"), what="it is there")
    installed.shell(command)


def test_uninstalling_leaves_what_the_documented_commands_delete(installed: Kubectl, values: Path) -> None:
    helm(installed, "uninstall", RELEASE)
    installed.shell(
        f"kubectl -n {installed.namespace} delete persistentvolumeclaim,secret -l release={RELEASE} --wait=false"
    )
    kinds = "all,secret,configmap,persistentvolumeclaim,serviceaccount,role,rolebinding,networkpolicy"
    left = installed("get", kinds, "-l", f"release={RELEASE}", "-o", "jsonpath={.items[*].kind}").split()
    assert set(left) <= {"Pod", "PersistentVolumeClaim"}  # which are ending
    everywhere = Kubectl(installed.kubeconfig)
    assert everywhere("get", "clusterrole,clusterrolebinding", "-l", f"release={RELEASE}", "-o", "name") == ""
    helm(installed, "install", RELEASE, str(CHART), "-f", str(values))
