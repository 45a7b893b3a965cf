"""The volumes of the bus grow by the commands that the refusal of an upgrade names, while its pods go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import CHART, run_helm
from tests.harness.kubectl import Kubectl
from tests.harness.waiting import wait_until
from tests.integration.helm.conftest import helm

pytestmark = pytest.mark.cluster

RELEASE: Final = "volumes"
BUS: Final = f"resolute-nats-{RELEASE}"
CLAIM: Final = f"data-{BUS}-0"


@pytest.fixture(scope="module")
def values(restricted: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bus on a volume that is here already, whose class can expand."""
    name = f"{restricted.namespace}-bus"
    given = {
        "maxSlotsPerPod": 1,
        "createNonNamespacedObjects": False,
        "tasks": {"namespace": restricted.namespace},
        "db": {"disablePVC": True},
        "nats": {"storageClassName": name, "storageSize": "1024Mi"},
    }
    path: Path = tmp_path_factory.mktemp("values") / "values.yaml"
    path.write_text(yaml.safe_dump(given))
    cluster = Kubectl(restricted.kubeconfig)
    cluster.apply(storage_class(name, expands=False), volume(restricted.namespace, name))
    yield path
    cluster("delete", "persistentvolume,storageclass", name, "--wait=false")


def storage_class(name: str, *, expands: bool) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/by-hand",
        "allowVolumeExpansion": expands,
    }


def volume(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "claimRef": {"namespace": namespace, "name": CLAIM},
            "hostPath": {"path": f"/tmp/{name}"},
        },
    }


def refusal(kubectl: Kubectl, values: Path, *options: str) -> str:
    """What an upgrade says that must fail; it changes nothing."""
    before = kubectl("get", "secrets,deployments", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
    place = ("-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))
    done = run_helm("upgrade", RELEASE, str(CHART), "-f", str(values), *options, "--no-hooks", *place)
    assert done.returncode == 1
    assert kubectl("get", "secrets,deployments", "-o", "jsonpath={.items[*].metadata.resourceVersion}") == before
    return done.stderr


def test_volumes_of_the_bus_grow_by_the_commands_of_the_refusal(restricted: Kubectl, values: Path) -> None:
    cluster = Kubectl(restricted.kubeconfig)
    helm(restricted, "install", RELEASE, str(CHART), "-f", str(values))
    wait_until(
        lambda: restricted("get", "pvc", CLAIM, "-o", "jsonpath={.status.phase}", "--ignore-not-found") == "Bound"
    )
    # The same size in other words is no other size.
    helm(restricted, "upgrade", RELEASE, str(CHART), "-f", str(values), "--set", "nats.storageSize=1Gi")
    larger = ("--set", "nats.storageSize=2Gi")
    assert "volumes do not become smaller: give 1Gi" in refusal(restricted, values, "--set", "nats.storageSize=500M")
    assert "stay on it" in refusal(restricted, values, "--set", "nats.storageClassName=other")
    assert "does not have allowVolumeExpansion" in refusal(restricted, values, *larger)

    cluster("patch", "storageclass", f"{restricted.namespace}-bus", "-p", '{"allowVolumeExpansion": true}')
    said = refusal(restricted, values, *larger)
    commands = said[said.index("  for claim") : said.index("--cascade=orphan")] + "--cascade=orphan"
    pod = restricted("get", "pod", f"{BUS}-0", "-o", "jsonpath={.metadata.uid}")
    restricted.shell(commands)
    helm(restricted, "upgrade", RELEASE, str(CHART), "-f", str(values), *larger)

    size = "jsonpath={.spec.resources.requests.storage}"
    assert restricted("get", "pvc", CLAIM, "-o", size) == "2Gi"
    template = "jsonpath={.spec.volumeClaimTemplates[0].spec.resources.requests.storage}"
    assert restricted("get", "statefulset", BUS, "-o", template) == "2Gi"
    wait_until(
        lambda: BUS in restricted("get", "pod", f"{BUS}-0", "-o", "jsonpath={.metadata.ownerReferences[*].name}")
    )
    assert restricted("get", "pod", f"{BUS}-0", "-o", "jsonpath={.metadata.uid}") == pod
    helm(restricted, "uninstall", RELEASE)
