"""Every cell of the table "Who reaches whom" in docs/secure.md, probed from pods of each kind."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import pytest

from deploy.operations.doctor.tasks.namespaces import proposed_ranges
from tests.harness.client import Client
from tests.harness.installation import NAMESPACE, POOLS, RELEASE, Installation
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = [
    pytest.mark.installation,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not os.environ.get("RESOLUTE_TEST_POLICIES"),
        reason="needs a cluster that enforces NetworkPolicies: `tests/cluster/kube/cluster up --kubelet --policies`, "
        "and RESOLUTE_TEST_POLICIES=1",
    ),
]

PAGE: Final = REPOSITORY / "docs" / "secure.md"
POOL: Final = "here"
TASK_PORT: Final = 8000
LISTENS: Final = f"python3 -m http.server {TASK_PORT}"
PARTS: Final = {
    "api": "master",
    "scheduler": "scheduler",
    "log intake": "logs",
    "launcher": "launcher",
    "PostgreSQL": "db",
    "NATS": "nats",
}
IMAGE: Final = "local/python:3.11"
METADATA: Final = "169.254.169.254"
PROBE: Final = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def reached(target):
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
    except OSError:
        return False
    return True
targets = sys.argv[1:]
with ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps([target for target, found in zip(targets, pool.map(reached, targets)) if found]))
"""

Pod = dict[str, Any]


def table() -> dict[tuple[str, str], bool]:
    """(From, to) -> whether the page says yes."""
    section = PAGE.read_text().split("## Who reaches whom\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    (_, *columns), _, *lines = rows
    matrix = [row for row in lines if len(row) == len(columns) + 1]
    assert {cell for _, *cells in matrix for cell in cells} == {"yes", "no"}
    return {(row[0], column): cell == "yes" for row in matrix for column, cell in zip(columns, row[1:], strict=True)}


class Probes:
    """Pods from which something is tried; what has no Python gets a container beside it."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def pods(self, namespace: str, selector: str) -> list[Pod]:
        return [
            pod
            for pod in Kubectl(self._installation.kubeconfig, namespace).items("pods", selector)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def part(self, name: str) -> Pod:
        return self.pods(NAMESPACE, f"release={RELEASE},determined-system={name}")[0]

    def reached(self, pod: Pod, container: str, targets: list[str]) -> set[str]:
        kubectl = Kubectl(self._installation.kubeconfig, pod["metadata"]["namespace"])
        name = pod["metadata"]["name"]
        said = kubectl("exec", name, "-c", container, "--", "python3", "-c", PROBE, *targets)
        return set(json.loads(said))

    def add_container(self, pod: Pod) -> str:
        """An ephemeral one in the network of the pod."""
        kubectl = Kubectl(self._installation.kubeconfig, pod["metadata"]["namespace"])
        name = pod["metadata"]["name"]
        kubectl("debug", name, f"--image={IMAGE}", "--container=probe", "--", "sleep", "600")

        def runs() -> bool:
            found = json.loads(kubectl("get", "pod", name, "-o", "json"))
            statuses = found["status"].get("ephemeralContainerStatuses", [])
            return any("running" in each["state"] for each in statuses)

        wait_until(runs, timeout_s=60, every_s=0.5, what=f"a probe in {name}")
        return "probe"


def address(pod: Pod, port: int) -> str:
    return f"{pod['status']['podIP']}:{port}"


@contextmanager
def somebody_outside() -> Iterator[str]:
    """A server on this machine, which is outside of the cluster."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as looking:
        looking.connect(("192.0.2.1", 9))  # nothing is sent
        own = looking.getsockname()[0]
    with socket.create_server((own, 0)) as server:

        def answer() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()
        yield f"{own}:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def proposal(installation: Installation) -> dict[str, list[str]]:
    """What ``resolute doctor`` proposes to close."""

    def items(*arguments: str) -> list[Pod]:
        found: list[Pod] = json.loads(installation.cluster("get", *arguments, "-o", "json"))["items"]
        return found

    return proposed_ranges(
        nodes=items("nodes"),
        pods=items("pods", "-A"),
        services=items("services", "-A"),
        service_ranges=items("servicecidrs"),
        endpoints=items("endpoints", "-n", "default"),
    )


@pytest.fixture(scope="module")
def closed(installation: Installation) -> Iterator[None]:
    """The installation with the ranges that the doctor proposes, and somebody in another namespace."""
    ranges = proposal(installation)
    installation.upgrade("--set-json", f"networkPolicy.tasks.closed={json.dumps(ranges)}")
    probe = {"name": "probe", "image": IMAGE, "command": ["sleep", "3600"], "imagePullPolicy": "Never"}
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "labels": {"app": "stranger"}}}
    default = Kubectl(installation.kubeconfig, "default")
    default.apply({**other, "spec": {"containers": [probe], "terminationGracePeriodSeconds": 0}})
    yield
    default("delete", "pod", "stranger", "--wait=false")
    installation.upgrade()


def targets_of(probes: Probes, installation: Installation, outside: str, task: Pod) -> Mapping[str, list[str]]:
    """Column -> addresses, all of which somebody listens at."""
    (node,) = json.loads(installation.cluster("get", "nodes", "-o", "json"))["items"]
    internal = next(each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP")
    kubelet = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    server = installation.cluster(
        "get",
        "endpoints",
        "kubernetes",
        "-n",
        "default",
        "-o",
        "jsonpath={.subsets[0].addresses[0].ip}:{.subsets[0].ports[0].port}",
    )
    service = installation.cluster("get", "service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}")
    part = {name: probes.part(label) for name, label in PARTS.items()}
    return {
        "api": [address(part["api"], 8081)],
        "log intake": [address(part["log intake"], 8081)],
        "status ports": [address(part[name], 9090) for name in ("api", "scheduler", "log intake", "launcher")],
        "PostgreSQL": [address(part["PostgreSQL"], 5432)],
        "NATS": [address(part["NATS"], 4222)],
        "NATS monitoring": [address(part["NATS"], 8222)],
        "API server": [server, f"{service}:443"],
        "nodes": [f"{internal}:{kubelet}"],
        "metadata service": [f"{METADATA}:80"],
        "name servers": [f"{internal}:53", f"{METADATA}:53"],
        "other tasks": [address(task, TASK_PORT)],
        "outside": [outside],
    }


@pytest.fixture(scope="module")
def tasks(installation: Installation, closed: None, det: Client, look: Looking) -> Iterator[tuple[list[Pod], Pod]]:
    """Pods of a gang, and of another task; all of them listen."""
    probes = Probes(installation)
    resources = {"resource_pool": POOL}
    gang = submit(det, LISTENS, resources={"slots_per_trial": 2, **resources})
    alone = submit(det, LISTENS, resources={"slots_per_trial": 1, **resources})

    def pods(experiment: int, count: int) -> list[Pod] | None:
        found = probes.pods(POOLS[POOL], f"determined.ai/experiment_id={experiment}")
        return found if len(found) == count else None

    def listen() -> bool:
        everybody = [address(pod, TASK_PORT) for pod in (*(pods(gang, 2) or ()), *(pods(alone, 1) or ()))]
        if len(everybody) < 3:
            return False
        # From themselves: through policies nobody but the api would see it.
        found = [*(pods(gang, 2) or ()), *(pods(alone, 1) or ())]
        own = f"127.0.0.1:{TASK_PORT}"
        return all(probes.reached(pod, "determined-container", [own]) for pod in found)

    wait_until(listen, timeout_s=180, every_s=2, what="three pods of tasks listen")
    members, single = pods(gang, 2), pods(alone, 1)
    assert members is not None
    assert single is not None
    yield members, single[0]
    for experiment in (gang, alone):
        det("experiment", "kill", str(experiment))
        look.wait(experiment, "STATE_CANCELED")


def until_enforced(look: Any, wanted: set[str]) -> set[str]:
    """What is reached once rules have followed the last pods; the last look if that never is what is wanted."""
    found: list[set[str]] = []

    def is_so() -> bool:
        found.append(look())
        return found[-1] == wanted

    with suppress(AssertionError):
        wait_until(is_so, timeout_s=15, every_s=1)
    return found[-1]


def test_every_cell_of_the_table_is_as_it_says(installation: Installation, tasks: tuple[list[Pod], Pod]) -> None:
    probes = Probes(installation)
    members, single = tasks
    said = table()
    columns = list(dict.fromkeys(column for _, column in said))
    sources: dict[str, tuple[Pod, str]] = {"task": (members[0], "determined-container")}
    for name, label in PARTS.items():
        pod = probes.part(label)
        sources[name] = (pod, probes.add_container(pod))
    (stranger,) = probes.pods("default", "app=stranger")
    sources["other pods"] = (stranger, "probe")
    assert set(sources) == {row for row, _ in said}
    wrong = []
    with somebody_outside() as outside:
        targets = targets_of(probes, installation, outside, single)
        assert list(targets) == columns
        everything = [target for each in targets.values() for target in each]
        for row, (pod, container) in sources.items():
            own = pod["status"]["podIP"]
            # Nobody is kept from itself.
            asked = [target for target in everything if not target.startswith(f"{own}:")]
            wanted = {target for column in columns if said[row, column] for target in targets[column]} & set(asked)
            reached = until_enforced(partial(probes.reached, pod, container, asked), wanted)
            wrong += [
                f"{row} {'reaches' if target in reached else 'does not reach'} {column} ({target})"
                for column in columns
                for target in targets[column]
                if target in asked and (target in reached) != said[row, column]
            ]
    assert wrong == []


def test_pods_of_one_allocation_reach_each_other_and_another_task_neither_of_them(
    installation: Installation, tasks: tuple[list[Pod], Pod]
) -> None:
    probes = Probes(installation)
    (first, second), single = tasks
    assert probes.reached(first, "determined-container", [address(second, TASK_PORT)])
    assert probes.reached(second, "determined-container", [address(first, TASK_PORT)])
    gang = [address(first, TASK_PORT), address(second, TASK_PORT)]
    assert probes.reached(single, "determined-container", gang) == set()


def test_the_policy_of_an_allocation_goes_with_its_job(
    installation: Installation, tasks: tuple[list[Pod], Pod]
) -> None:
    namespace = Kubectl(installation.kubeconfig, POOLS[POOL])
    (first, _), _ = tasks
    name = first["metadata"]["labels"]["job-name"]
    owners = json.loads(namespace("get", "networkpolicy", name, "-o", "json"))["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["name"]) for owner in owners] == [("Job", name)]
    assert re.fullmatch(r"det-.*", name)
