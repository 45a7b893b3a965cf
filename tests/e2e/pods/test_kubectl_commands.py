"""Commands that users and administrators have in their notes work as they are. See docs/reference/kubernetes.md 18."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.pods.conftest import OnCluster
from tests.harness.client import Client
from tests.harness.kubectl import Kubectl
from tests.harness.looking import ENDED, Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet]

BESIDE = {"name": "beside", "image": "IMAGE", "command": ["sh", "-c", "echo from beside; sleep 1000"]}
EMITS = "DET_SHIPPER_EMIT_STDOUT_LOGS=1"
"""With it kubectl shows what the task prints; without it only the log of the system does."""


def begun(det: Client, look: Looking, count: int, **changes: Any) -> list[int]:
    """Experiments that have printed "begun" and go on."""
    made = [submit(det, "echo begun; sleep 1000", resources={"slots_per_trial": 0}, **changes) for _ in range(count)]

    def all_begun() -> bool:
        return all(any("begun" in look.printed(one["id"]) for one in look.trials(each)) for each in made)

    wait_until(all_begun, timeout_s=180, what="they run")
    return made


@pytest.fixture(scope="module")
def running(det: Client, look: Looking, task_image: str) -> Iterator[int]:
    """An experiment of one pod with a sidecar."""
    beside = {**BESIDE, "image": task_image}
    environment = {"environment_variables": [EMITS], "pod_spec": {"spec": {"containers": [beside]}}}
    [experiment] = begun(det, look, 1, environment=environment)
    yield experiment
    # A test that ends all pods has ended it already.
    if look.state(experiment) not in ENDED:
        det("experiment", "kill", str(experiment))
        look.wait(experiment, "STATE_CANCELED")


@pytest.fixture(scope="module")
def pod(running: int, on_cluster: OnCluster) -> str:
    [name] = on_cluster.pods_of(running)
    return name


@pytest.fixture(scope="module")
def job(running: int, kubectl: Kubectl) -> str:
    [name] = kubectl.names("jobs", f"determined.ai/experiment_id={running}")
    return name


def test_listing_pods_and_jobs(kubectl: Kubectl, running: int, pod: str, job: str) -> None:
    ns = kubectl.namespace
    assert pod in kubectl.shell(f"kubectl get pods -n {ns} -l=determined")
    assert job in kubectl.shell(f"kubectl get jobs -n {ns} -l=determined")
    assert pod in kubectl.shell(f'kubectl get pods -n {ns} -l="batch.kubernetes.io/job-name={job}"')
    # For a shell it is `grep <shellID>`: names of pods have in them what a user knows.
    assert pod in kubectl.shell(f"kubectl get pods -A | grep exp-{running}-trial")


def test_logs_and_programs_in_named_containers(
    kubectl: Kubectl, look: Looking, running: int, pod: str, job: str
) -> None:
    ns = kubectl.namespace
    for command in (
        f"kubectl logs -n {ns} jobs/{job} -c determined-container",
        f"kubectl logs -n {ns} {pod} --container determined-container",
    ):
        assert "begun" in kubectl.shell(command)
    for command in (f"kubectl logs -n {ns} jobs/{job}", f"kubectl logs -n {ns} {pod}"):
        assert "from beside" in kubectl.shell(command), "containers of the user come first"
    trial = look.trial(running)["id"]
    inside = "echo 'echo trial $DET_TRIAL_ID'"
    enter = f"kubectl exec -ti -n {ns} {pod} --container determined-container -- /bin/sh"
    assert f"trial {trial}" in kubectl.shell(f"{inside} | {enter}")
    assert "echo from beside" in kubectl.shell(
        f"echo 'cat /proc/1/cmdline' | kubectl exec -ti -n {ns} {pod} --container beside -- /bin/sh"
    )


def test_a_tainted_node_takes_only_tasks_that_tolerate_it(
    kubectl: Kubectl, det: Client, look: Looking, on_cluster: OnCluster
) -> None:
    [node] = [item["metadata"]["name"] for item in json.loads(kubectl("get", "nodes", "-o", "json"))["items"]]
    kubectl.shell(f"kubectl taint nodes {node} pool_taint=prod:NoSchedule")
    try:
        tolerates = [{"key": "pool_taint", "operator": "Equal", "value": "prod", "effect": "NoSchedule"}]
        environment = {"pod_spec": {"spec": {"tolerations": tolerates}}}
        without = submit(det, "true", resources={"slots_per_trial": 0})
        look.wait(submit(det, "true", resources={"slots_per_trial": 0}, environment=environment))
        look.wait(submit(det, "true", resources={"slots_per_trial": 1}, environment=environment))
        assert look.state(without) != "STATE_COMPLETED"
    finally:
        kubectl.shell(f"kubectl taint nodes {node} pool_taint=prod:NoSchedule-")
    look.wait(without)


def test_deleting_all_pods_or_jobs_leaves_none(
    kubectl: Kubectl, det: Client, look: Looking, on_cluster: OnCluster
) -> None:
    ns = kubectl.namespace
    for kind, kinds in (("pod", "pods"), ("jobs", "jobs")):
        experiments = begun(det, look, 2)
        kubectl.shell(
            f"kubectl get {kinds} -n {ns} --no-headers=true -l=determined | awk '{{print $1}}'"
            f" | xargs kubectl delete -n {ns} {kind}"
        )
        for experiment in experiments:
            look.wait(experiment, "STATE_ERROR")
            log = "".join(line["log"] for line in look.logs(look.trial(experiment)["id"]))
            [crash] = [line for line in log.splitlines() if line.startswith("crashed:")]
            assert "deleted" in crash
        wait_until(lambda: not kubectl.names("pods") | kubectl.names("jobs"), timeout_s=60, what="nothing is left")
