"""One installation for all modules here, which run in the order of their names: the last one takes it away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import yaml

from tests.harness.client import Client
from tests.harness.helm import find_helm
from tests.harness.installation import NAMESPACE, POOLS, RELEASE, Installation
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking

VALUES: Final = Path(__file__).with_name("values.yaml")


@pytest.fixture(scope="session")
def installation(kubeconfig: Path, task_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    find_helm()
    folder = tmp_path_factory.mktemp("installation")
    cluster = Kubectl(kubeconfig)
    there = set(cluster("get", "namespaces", "-o", "jsonpath={.items[*].metadata.name}").split())
    assert not there & {NAMESPACE, *POOLS.values()}, "needs a cluster of its own"
    checkpoints = f"/tmp/resolute-checkpoints-{uuid4().hex[:8]}"
    values: dict[str, Any] = yaml.safe_load(VALUES.read_text())
    values["taskContainerDefaults"] = {"cpuImage": task_image, "gpuImage": task_image}
    # What network policies count, where the cluster enforces them.
    ports = cluster("get", "endpoints", "kubernetes", "-n", "default", "-o", "jsonpath={.subsets[*].ports[*].port}")
    values["networkPolicy"] = {"kubernetesApiPorts": [443, *map(int, ports.split())]}
    values["checkpointStorage"] = {"type": "shared_fs", "hostPath": checkpoints}
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    installation = Installation(kubeconfig, folder, path)
    try:
        installation.install()
        yield installation
    finally:
        installation.try_helm("uninstall", RELEASE)
        for namespace in {NAMESPACE, *POOLS.values()}:
            cluster("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
        shutil.rmtree(checkpoints, ignore_errors=True)  # where the node is this machine


@pytest.fixture(scope="session")
def det(installation: Installation) -> Client:
    return installation.det()


@pytest.fixture(scope="session")
def look(installation: Installation) -> Iterator[Looking]:
    with installation.http() as http:
        yield Looking(http)
