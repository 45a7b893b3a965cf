"""A release on a cluster: what an upgrade keeps, what its launchers may do, what uninstalling leaves.

Its pods are not looked at; images need not be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.harness.helm import CHART, run_helm
from tests.harness.kubectl import Kubectl
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.cluster

RELEASE = "life"


@pytest.fixture(scope="module")
def values(restricted: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pools, one in the namespace of the release and one in another; nothing in the cluster that has one name."""
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
        cluster("delete", "namespace", f"{restricted.namespace}-pool", "--wait=false")


def helm(kubectl: Kubectl, *arguments: str) -> str:
    """A command without hooks: jobs end only where pods run."""
    done = run_helm(
        *arguments, "--no-hooks", "-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig), timeout_s=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    here, there = installed.namespace, f"{installed.namespace}-pool"
    for pool, own, foreign in (("here", here, there), ("there", there, here)):
        assert may(installed, pool, "create", "jobs", own)
        for verb, resource in (("create", "jobs"), ("delete", "pods"), ("create", "secrets"), ("get", "configmaps")):
            assert not may(installed, pool, verb, resource, foreign)
        assert not may(installed, pool, "get", "secrets", own)


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
