"""Nodes as agents: what the client lists, and what happens to tasks when one is disabled.."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest

from tests.e2e.pods.conftest import OnCluster
from tests.harness.client import Client
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet]

ENDLESS = {"steps": 0, "pause_s": 0.2}


@pytest.fixture
def node(look: Looking, admin: Client) -> Iterator[str]:
    """The only node, which is enabled again afterwards."""
    [agent] = look.get("/agents")["agents"]
    yield agent["id"]
    admin("agent", "enable", agent["id"])


def listed(det: Client, *command: str) -> list[dict[str, str]]:
    """Rows of a table of the client, by the names of its columns."""
    return list(csv.DictReader(io.StringIO(det(*command, "--csv"))))


def finish(on_cluster: OnCluster, look: Looking, experiment: int) -> None:
    """Let programs without an end come to one."""
    flag = on_cluster.system.layout.checkpoints / "finish"
    flag.touch()
    try:
        look.wait(experiment)
    finally:
        flag.unlink()


def trains(look: Looking, experiment: int) -> bool:
    return any(line.startswith("step ") for trial in look.trials(experiment) for line in look.printed(trial["id"]))


def test_what_the_client_lists(det: Client, look: Looking, kubectl: Kubectl, node: str) -> None:
    experiment = submit(det, "sleep 1000", resources={"slots_per_trial": 2})
    wait_until(
        lambda: look.state(experiment) == "STATE_RUNNING" and look.trials(experiment), timeout_s=180, what="it runs"
    )
    allocation = f"{look.trial(experiment)['taskId']}.1"
    name = f"Trial {look.trial(experiment)['id']} (Experiment {experiment})"

    def slots() -> list[tuple[str, str]]:
        rows = json.loads(det("slot", "list", "--json"))
        assert {(row["agent_id"], row["type"], row["resource_pools"]) for row in rows} == {(node, "cpu", "default")}
        assert [row["slot_id"] for row in rows] == [f"{number:03}" for number in range(len(rows))]
        return [(row["allocation_id"], row["task_name"]) for row in rows if row["allocation_id"] != "FREE"]

    wait_until(lambda: slots() == [(allocation, name)] * 2, timeout_s=60, what="two slots are taken")
    [agent] = listed(det, "agent", "list")
    assert (agent["Agent ID"], agent["Resource Pool"]) == (node, "default")
    assert (agent["Enabled"], agent["Draining"], agent["Containers"]) == ("True", "False", "1")
    [address] = [
        each["address"] for each in json.loads(kubectl("get", "node", node, "-o", "json"))["status"]["addresses"][:1]
    ]
    assert address in agent["Addresses"]
    [job] = listed(det, "job", "list")
    assert (job["Job Name"], job["State"]) == (f"test of sleep 1000 ({experiment})", "STATE_SCHEDULED")
    assert job["Slots (acquired/needed)"] == "2/2"
    # What `det rp list` showed; the client has no such command any more.
    [pool] = look.get("/resource-pools")["resourcePools"]
    assert (pool["name"], pool["type"], pool["numAgents"]) == ("default", "RESOURCE_POOL_TYPE_K8S", 1)
    assert (pool["slotsUsed"], pool["slotsAvailable"]) == (2, int(agent["Slots"]))
    assert (pool["location"], pool["instanceType"], pool["slotsPerAgent"]) == ("n/a", "n/a", 1)

    det("experiment", "kill", str(experiment))
    look.wait(experiment, "STATE_CANCELED")
    assert listed(det, "job", "list") == []
    wait_until(lambda: slots() == [], timeout_s=60, what="the slots are free")


def test_a_trial_without_restarts_survives_that_its_node_is_disabled(
    on_cluster: OnCluster, det: Client, admin: Client, look: Looking, kubectl: Kubectl, node: str
) -> None:
    experiment = submit(det, "steps.py", hyperparameters=ENDLESS, max_restarts=0)
    wait_until(lambda: trains(look, experiment), timeout_s=180, what="it trains")
    before = on_cluster.pods_of(experiment)

    admin("agent", "disable", node)
    wait_until(lambda: not on_cluster.pods_of(experiment), timeout_s=120, what="its pod is gone")
    wait_until(lambda: listed(det, "agent", "list")[0]["Enabled"] == "False", timeout_s=60, what="it is listed")
    assert look.state(experiment) in ("STATE_ACTIVE", "STATE_QUEUED", "STATE_PULLING", "STATE_STARTING")

    admin("agent", "enable", node)
    wait_until(lambda: on_cluster.pods_of(experiment), timeout_s=120, what="it has another pod")
    assert not on_cluster.pods_of(experiment) & before
    finish(on_cluster, look, experiment)
    assert look.trial(experiment)["restarts"] == 0


def test_what_runs_on_a_draining_node_goes_on(
    on_cluster: OnCluster, det: Client, admin: Client, look: Looking, node: str
) -> None:
    running = submit(det, "steps.py", hyperparameters=ENDLESS)
    wait_until(lambda: trains(look, running), timeout_s=180, what="it trains")
    pods = on_cluster.pods_of(running)

    admin("agent", "disable", "--drain", node)
    wait_until(lambda: listed(det, "agent", "list")[0]["Draining"] == "True", timeout_s=60, what="it is listed")
    waiting = submit(det, "steps.py")
    last = len(look.steps(look.trial(running)["id"]))
    wait_until(lambda: len(look.steps(look.trial(running)["id"])) > last + 20, what="it trains on")
    assert on_cluster.pods_of(running) == pods
    assert not trains(look, waiting)

    admin("agent", "enable", node)
    look.wait(waiting)
    finish(on_cluster, look, running)
    assert on_cluster.system.rows("SELECT run_id, restarts FROM trials WHERE experiment_id = $1", running) == [
        {"run_id": 1, "restarts": 0}
    ]
