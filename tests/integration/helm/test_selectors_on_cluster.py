"""A release gets pods with labels of our own domain, and then selectors by them; Services have ready pods all the time.

Needs simulated nodes, whose pods are ready without their images.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import CHART, chart_without_own_labels, run_helm
from tests.harness.kubectl import Kubectl
from tests.harness.waiting import wait_until
from tests.integration.helm.conftest import helm

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

RELEASE: Final = "labels"
ROLLING: Final = {f"determined-master-service-{RELEASE}", f"resolute-logs-{RELEASE}"}
"""Services whose pods are replaced one after the other."""
SERVERS: Final = {
    f"determined-db-service-{RELEASE}",
    f"resolute-nats-{RELEASE}",
    f"resolute-nats-headless-{RELEASE}",
}
"""Services of one pod each, which is gone before the next one comes."""
SAID: Final = "Services and network policies still select pods by the labels app, release and determined-system"


@pytest.fixture(scope="module")
def values(restricted: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a release needs whose only volume is that of NATS, which is here already."""
    volume = f"{restricted.namespace}-nats"
    one = {"replicas": 1}
    given = {
        "maxSlotsPerPod": 1,
        "createNonNamespacedObjects": False,
        "tasks": {"namespace": restricted.namespace},
        "db": {"disablePVC": True, "cpuRequest": "100m", "memRequest": "64Mi"},
        "nats": {"storageClassName": volume, "storageSize": "1Gi"},
        **dict.fromkeys(("api", "scheduler", "logs", "launcher"), one),
    }
    path: Path = tmp_path_factory.mktemp("values") / "values.yaml"
    path.write_text(yaml.safe_dump(given))
    claim = {"namespace": restricted.namespace, "name": f"data-resolute-nats-{RELEASE}-0"}
    cluster = Kubectl(restricted.kubeconfig)
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": volume,
                "claimRef": claim,
                "hostPath": {"path": f"/tmp/{volume}"},
            },
        }
    )
    yield path
    cluster("delete", "persistentvolume", volume, "--wait=false")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chart_without_own_labels(tmp_path_factory.mktemp("before") / "chart")


def wait_until_replaced(kubectl: Kubectl) -> None:
    """Every workload has the pods of its template only, and they are ready."""

    def replaced() -> bool:
        workloads = kubectl.items("deployments,statefulsets", f"release={RELEASE}")
        return len(workloads) == 6 and all(
            each["status"].get("observedGeneration", 0) >= each["metadata"]["generation"]
            and {each["status"].get(count, 0) for count in ("replicas", "updatedReplicas", "readyReplicas")} == {1}
            for each in workloads
        )

    wait_until(replaced, timeout_s=120, every_s=0.5, what="pods are replaced and ready")


def selecting(kubectl: Kubectl) -> set[str]:
    """Which kinds of labels select pods in Services, policies and budgets."""
    kinds = set()
    for each in kubectl.items("services,networkpolicies,poddisruptionbudgets", f"release={RELEASE}"):
        spec: dict[str, Any] = each["spec"]
        keys = (
            spec["selector"]
            if each["kind"] == "Service"
            else (spec.get("podSelector") or spec["selector"])["matchLabels"]
        )
        kinds.add("own" if set(keys) <= {"resolute/release", "resolute/component", "resolute/pool"} else "former")
    return kinds


def ready_pods(kubectl: Kubectl) -> dict[str, set[str]]:
    """Service of the release -> pods that it selects, which are ready and not ending: what its endpoints are made of.

    The controller makes none of simulated pods, whose addresses are loopback ones.
    """
    found = json.loads(kubectl("get", "services,pods", "-l", f"release={RELEASE}", "-o", "json"))["items"]
    ready: dict[str, Any] = {
        each["metadata"]["name"]: each["metadata"]["labels"]
        for each in found
        if each["kind"] == "Pod"
        and "deletionTimestamp" not in each["metadata"]
        and {"Ready": "True"}.items()
        <= {known["type"]: known["status"] for known in each["status"].get("conditions", [])}.items()
    }
    return {
        each["metadata"]["name"]: {
            pod for pod, labels in ready.items() if each["spec"]["selector"].items() <= labels.items()
        }
        for each in found
        if each["kind"] == "Service"
    }


@contextmanager
def pods_all_the_time(kubectl: Kubectl, services: set[str]) -> Iterator[None]:
    """Whenever somebody looks, there are ready pods behind these Services, and behind each one at the end."""
    looks = [ready_pods(kubectl)]
    assert looks[0].keys() == ROLLING | SERVERS
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            looks.append(ready_pods(kubectl))

    with ThreadPoolExecutor(1) as looking:
        looked = looking.submit(look)
        try:
            yield
        finally:
            stop.set()
    looked.result()
    assert len(looks) > 3
    assert {each for found in looks for each in services if not found[each]} == set()
    wait_until(lambda: all(ready_pods(kubectl).values()), what="each Service has a pod")


def test_selectors_follow_the_labels_of_live_pods(restricted: Kubectl, values: Path, before: Path) -> None:
    given = ("-f", str(values))
    upgrade = ("upgrade", RELEASE, str(CHART), *given)
    helm(restricted, "install", RELEASE, str(before), *given)
    wait_until_replaced(restricted)
    assert selecting(restricted) == {"former"}
    bearing = f"resolute/release={RELEASE}"
    assert restricted.names("pods", bearing) == set()

    with pods_all_the_time(restricted, ROLLING):
        said = helm(restricted, *upgrade)
        assert SAID in said
        assert f"determined-db-deployment-{RELEASE}, determined-master-deployment-{RELEASE}, resolute-launcher" in said
        wait_until_replaced(restricted)
    assert selecting(restricted) == {"former"}
    assert len(restricted.names("pods", bearing)) == 6

    with pods_all_the_time(restricted, ROLLING | SERVERS):
        assert SAID not in helm(restricted, *upgrade)
        assert selecting(restricted) == {"own"}

    with pods_all_the_time(restricted, ROLLING):
        # While pods with own labels replace one another, selectors stay.
        for number in ("1", "2"):
            assert SAID not in helm(restricted, *upgrade, "--set-string", f"api.podAnnotations.number={number}")
            assert selecting(restricted) == {"own"}
        wait_until_replaced(restricted)
        helm(restricted, "rollback", RELEASE, "2")
        assert selecting(restricted) == {"former"}
        wait_until_replaced(restricted)
        helm(restricted, "rollback", RELEASE, "3")
        assert selecting(restricted) == {"own"}
        wait_until_replaced(restricted)
        helm(restricted, "rollback", RELEASE, "1")
        assert selecting(restricted) == {"former"}
        wait_until_replaced(restricted)
    assert restricted.names("pods", bearing) == set()

    # What was noted of the selectors went back, too.
    own = run_helm(
        *upgrade,
        "--set",
        "podSelectors=own",
        "--no-hooks",
        "-n",
        restricted.namespace,
        "--kubeconfig",
        str(restricted.kubeconfig),
    )
    assert own.returncode != 0
    assert f"podSelectors is own, but there are pods of determined-db-deployment-{RELEASE}, " in own.stderr
    with pods_all_the_time(restricted, ROLLING):
        assert SAID in helm(restricted, *upgrade)
        assert selecting(restricted) == {"former"}
        wait_until_replaced(restricted)
        helm(restricted, *upgrade)
        assert selecting(restricted) == {"own"}

    # Nothing is live any more.
    helm(restricted, "uninstall", RELEASE, "--wait")
    helm(restricted, "install", RELEASE, str(CHART), *given)
    assert selecting(restricted) == {"own"}
    assert (
        json.loads(restricted("get", "secret", f"resolute-generated-{RELEASE}", "-o", "json"))["data"]["pod-selectors"]
        == "b3du"
    )
    helm(restricted, "uninstall", RELEASE)
