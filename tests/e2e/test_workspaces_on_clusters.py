"""Workspaces with namespaces of their own, nodes out of service and new priorities, on a cluster. Its pods need not run
anything.

Acceptance items A14, A15 and A19 of docs/reference/kubernetes.md 20, as far as they take a whole system.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness.client import Client
from tests.harness.kubectl import Kubectl, new_namespace
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit

pytestmark = pytest.mark.cluster

PATIENCE_S = 120
QUOTA_USED_UP = "the resource quota of its workspace is used up"


@dataclass(frozen=True)
class OnCluster:
    system: WholeSystem
    pool: Kubectl
    """In the namespace of the pool."""
    admin: Client
    look: Looking

    @property
    def cluster(self) -> Kubectl:
        return Kubectl(self.pool.kubeconfig)

    def jobs(self, experiment: int, namespace: str) -> set[str]:
        return Kubectl(self.pool.kubeconfig, namespace).names("jobs", f"determined.ai/experiment_id={experiment}")

    def node_of(self, experiment: int) -> str:
        """Where its only pod runs; "" while it does not."""
        pods = self.pool.items("pods", f"determined.ai/experiment_id={experiment}")
        running = [pod for pod in pods if pod["status"].get("phase") == "Running" and not _is_leaving(pod)]
        return str(running[0]["spec"].get("nodeName", "")) if running else ""

    def runs(self, experiment: int) -> list[dict[str, Any]]:
        return self.system.rows("SELECT run_id, restarts FROM trials WHERE experiment_id = $1", experiment)

    def wait_reasons(self, experiment: int) -> list[str]:
        rows = self.system.rows(
            "SELECT wait_reason FROM allocations WHERE task_id LIKE $1 AND released_at IS NULL", f"{experiment}.%"
        )
        return [row["wait_reason"] for row in rows]

    def end(self, experiment: int) -> None:
        self.admin("experiment", "kill", str(experiment))
        self.look.wait(experiment, "STATE_CANCELED", timeout_s=PATIENCE_S)


def _is_leaving(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@pytest.fixture(scope="module")
def on_cluster(kubeconfig: Path) -> Iterator[OnCluster]:
    with (
        new_namespace(kubeconfig) as pool,
        running_system(
            kubeconfig=str(kubeconfig),
            namespace=pool.namespace,
            slot_type="cuda",
            max_slots_per_pod=8,
            image="nothing",
            shipper="builtin",
        ) as system,
    ):
        admin = system.det("admin")
        admin("user", "login", "admin", answers=("",))
        with system.http() as http:
            yield OnCluster(system, pool, admin, Looking(http))


def test_a_workspace_has_a_namespace_and_a_quota_until_it_is_deleted(on_cluster: OnCluster) -> None:
    det, look = on_cluster.admin, on_cluster.look
    out = det("workspace", "create", "lab", "--auto-create-namespace", "--resource-quota", "2")
    own = out.split("is bound to namespace ")[1].split()[0]
    try:
        assert on_cluster.cluster("get", "namespace", "-l", f"determined={own}", "-o", "name").strip() == (
            f"namespace/{own}"
        )
        quota = Kubectl(on_cluster.pool.kubeconfig, own)("get", "resourcequota", f"{own}-quota", "-o", "json")
        assert json.loads(quota)["spec"]["hard"] == {"requests.nvidia.com/gpu": "2"}
        det("project", "create", "lab", "inside")
        place = {"workspace": "lab", "project": "inside"}
        first = submit(det, "sleep 1000", resources={"slots_per_trial": 2}, **place)
        wait_until(lambda: on_cluster.jobs(first, own), timeout_s=PATIENCE_S, what="it is launched in the namespace")
        assert not on_cluster.jobs(first, on_cluster.pool.namespace)
        wait_until(lambda: look.state(first) == "STATE_RUNNING", timeout_s=PATIENCE_S, what="it runs")

        second = submit(det, "sleep 1000", resources={"slots_per_trial": 1}, **place)
        wait_until(lambda: on_cluster.wait_reasons(second) == [QUOTA_USED_UP], timeout_s=PATIENCE_S, what="it waits")
        limits = look.get(f"/workspaces/{look.experiment(first)['workspaceId']}/get-k8s-resource-quotas")
        assert list(limits["resourceQuotas"].values()) == [2]
        det("workspace", "resource-quota", "set", "lab", "3")
        wait_until(lambda: on_cluster.jobs(second, own), timeout_s=PATIENCE_S, what="the next is launched")

        on_cluster.end(first)
        # What runs takes no harm when its project moves away and its workspace goes: the namespace stays as long.
        det("workspace", "create", "refuge")
        refuge = json.loads(det("workspace", "describe", "refuge", "--json"))["id"]
        moved = look.experiment(second)["projectId"]
        with on_cluster.system.http() as http:
            body = {"projectId": moved, "destinationWorkspaceId": refuge}
            token = {"Authorization": f"Bearer {on_cluster.system.token('admin')}"}
            http.post(f"/api/v1/projects/{moved}/move", json=body, headers=token).raise_for_status()
        det("workspace", "delete", "lab", "--yes")
        assert on_cluster.jobs(second, own)
        on_cluster.end(second)
        wait_until(lambda: not _exists(on_cluster, own), timeout_s=PATIENCE_S, what="the namespace is gone")
        assert on_cluster.system.rows("SELECT namespace FROM auto_created_namespaces") == []
    finally:
        on_cluster.cluster("delete", "namespace", own, "--ignore-not-found", "--wait=false")


def test_tasks_run_where_their_workspace_is_bound_to(on_cluster: OnCluster) -> None:
    det = on_cluster.admin
    words = det.fails("workspace", "create", "lost", "--namespace", "there-is-no-such-namespace")
    assert "error finding namespace there-is-no-such-namespace" in words
    with new_namespace(on_cluster.pool.kubeconfig) as team:
        det("workspace", "create", "team", "--namespace", team.namespace)
        det("project", "create", "team", "inside")
        refusal = det.fails("workspace", "resource-quota", "set", "team", "1")
        assert "cannot set quota on a workspace that is not bound to an auto-created namespace" in refusal
        place = {"workspace": "team", "project": "inside"}
        first = submit(det, "sleep 1000", **place)
        wait_until(lambda: on_cluster.jobs(first, team.namespace), timeout_s=PATIENCE_S, what="it is launched there")
        det("workspace", "bindings", "delete", "team")
        second = submit(det, "sleep 1000", **place)
        wait_until(lambda: on_cluster.jobs(second, on_cluster.pool.namespace), timeout_s=PATIENCE_S, what="another one")
        assert on_cluster.jobs(first, team.namespace), "what runs stays where it is"
        on_cluster.end(first)
        on_cluster.end(second)
        wait_until(lambda: not on_cluster.jobs(first, team.namespace), timeout_s=PATIENCE_S, what="its Job is gone")


def test_a_disabled_node_is_marked_and_cleared_once(on_cluster: OnCluster) -> None:
    det, look = on_cluster.admin, on_cluster.look
    experiment = submit(det, "sleep 1000", max_restarts=0)
    wait_until(lambda: on_cluster.node_of(experiment), timeout_s=PATIENCE_S, what="it runs")
    node = on_cluster.node_of(experiment)
    label = f"determined.ai/cluster-id-{look.get('/master')['clusterId']}"

    def marked() -> str | None:
        labels: dict[str, str] = json.loads(on_cluster.cluster("get", "node", node, "-o", "json"))["metadata"]["labels"]
        return labels.get(label)

    def agent() -> tuple[bool, bool]:
        [found] = [one for one in json.loads(det("agent", "list", "--json")) if one["id"] == node]
        return found["enabled"], found["draining"]

    try:
        drained = det("agent", "disable", "--drain", node)
        assert f"{look.trial(experiment)['taskId']}.1" in drained, "what is still in progress there"
        assert (marked(), agent()) == ("no-schedule", (False, True))
        assert on_cluster.runs(experiment) == [{"run_id": 1, "restarts": 0}]
        assert on_cluster.node_of(experiment) == node

        det("agent", "disable", node)
        assert (marked(), agent()[0]) == ("no-execute", False)
        wait_until(lambda: on_cluster.node_of(experiment) not in ("", node), timeout_s=PATIENCE_S, what="it has moved")
        assert on_cluster.runs(experiment) == [{"run_id": 2, "restarts": 0}]
        wait_until(lambda: agent() == (False, False), timeout_s=PATIENCE_S, what="the mark is seen")
        slots = [one for one in json.loads(det("slot", "list", "--json")) if one["agent_id"] == node]
        assert {(one["enabled"], one["draining"]) for one in slots} == {(False, False)}
        task = look.trial(experiment)["taskId"]
        assert not [one for one in slots if one["allocation_id"].startswith(task)]

        det("agent", "enable", node)
        assert marked() is None
        wait_until(lambda: agent() == (True, False), timeout_s=PATIENCE_S, what="it is back")
        assert on_cluster.runs(experiment) == [{"run_id": 2, "restarts": 0}], "cleared once"
    finally:
        on_cluster.cluster("label", "node", node, f"{label}-")
    on_cluster.end(experiment)


def test_a_new_priority_keeps_the_pods(on_cluster: OnCluster) -> None:
    det, look = on_cluster.admin, on_cluster.look
    experiment = submit(det, "sleep 1000", resources={"slots_per_trial": 1, "priority": 60}, max_restarts=0)

    def pods() -> list[tuple[str, int]]:
        found = on_cluster.pool.items("pods", f"determined.ai/experiment_id={experiment}")
        return [(pod["metadata"]["uid"], pod["spec"]["priority"]) for pod in found if not _is_leaving(pod)]

    wait_until(lambda: on_cluster.node_of(experiment), timeout_s=PATIENCE_S, what="it runs")
    [(uid, priority)] = pods()
    assert priority == 60
    # Returns when the scheduler has done what there was to do.
    det("experiment", "set", "priority", str(experiment), "70")
    assert pods() == [(uid, 60)]
    assert on_cluster.runs(experiment) == [{"run_id": 1, "restarts": 0}]
    [job] = [job for job in json.loads(det("job", "list", "--json"))["jobs"] if job["entityId"] == str(experiment)]
    assert job["priority"] == 70
    wait_until(lambda: look.state(experiment) == "STATE_RUNNING", timeout_s=PATIENCE_S, what="that is known")
    on_cluster.end(experiment)


def _exists(on_cluster: OnCluster, namespace: str) -> bool:
    return bool(on_cluster.cluster("get", "namespace", namespace, "--ignore-not-found", "-o", "name").strip())
