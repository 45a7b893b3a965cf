"""Namespaces and quotas of workspaces, and nodes of a cluster, as the unmodified client sees them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, text

from libs.db.engine import Connection
from libs.db.tables.namespaces import auto_created_namespaces
from libs.errors import FailedPrecondition, PermissionDenied, Unavailable
from libs.events import cluster_admin as verbs
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.cluster_admin import ClusterNamespaceRequest, NodeMarkRequest
from libs.events.observations import ObservedPod
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.cluster_admin import ClusterAdminThread, FakeClusterAdmin
from tests.harness.containers import ContainerNats
from tests.harness.det import Det, Ended
from tests.harness.waiting import wait_until
from tests.integration.api.world import Rows, World, new_world

CLUSTER = """
resource_manager:
  type: kubernetes
  cluster_name: here
  default_namespace: default
  max_slots_per_pod: 4
  default_compute_resource_pool: gpus
  default_aux_resource_pool: gpus
resource_pools: [{pool_name: gpus}]
"""


@pytest.fixture(scope="module")
def world(
    database_url: str, nats_server: NatsServer | ContainerNats, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    with new_world(
        tmp_path_factory.mktemp("api"),
        database_url=database_url,
        bus_url=nats_server.url,
        cluster=CLUSTER,
        settings={"release_namespace": "rel"},
    ) as world:
        yield world


@pytest.fixture(scope="module")
def launcher(world: World, api: ApiProcess) -> Iterator[ClusterAdminThread]:
    thread = ClusterAdminThread(FakeClusterAdmin("gpus"), world.bus_url)
    with thread:
        yield thread


@pytest.fixture
def cluster_admin(launcher: ClusterAdminThread) -> Iterator[FakeClusterAdmin]:
    launcher.cluster_admin.namespaces["team"] = False
    launcher.cluster_admin.asked.clear()
    yield launcher.cluster_admin
    launcher.cluster_admin.refuses.clear()
    launcher.cluster_admin.on_asked = None


@pytest.fixture(scope="module")
def cid(admin: httpx.Client) -> str:
    """What the names of namespaces have of the cluster id."""
    return str(admin.get("/api/v1/master").json()["clusterId"])[:4]


def made(world: World) -> dict[str, bool]:
    """Namespaces that somebody remembers -> whether a request is at work with them."""

    async def work(connection: Connection) -> dict[str, bool]:
        rows = await connection.execute(select(auto_created_namespaces))
        return {row.namespace: row.claimed_until is not None for row in rows}

    found: dict[str, bool] = world.in_database(work)
    return found


def bound(det: Det, workspace: str) -> str:
    """The namespace of a workspace as the client lists it."""
    lines = det("workspace", "bindings", "list", workspace).out.splitlines()
    [shown] = [line for line in lines if line.strip().startswith("here")]
    return shown.split("|")[-1].strip()


def ident(det: Det, workspace: str) -> int:
    return int(det("workspace", "describe", workspace, "--json").json()["id"])


def says(ended: Ended, *words: str) -> None:
    for word in words:
        assert word in ended.err, str(ended)


def test_a_workspace_is_made_in_a_namespace_that_is_there(det: Det, cluster_admin: FakeClusterAdmin) -> None:
    out = det("workspace", "create", "first", "--namespace", "team").out
    assert "Workspace first is bound to namespace team" in out
    assert bound(det, "first") == "team"
    assert (verbs.FIND_NAMESPACE, ClusterNamespaceRequest(namespace="team")) in cluster_admin.asked


def test_a_workspace_is_made_with_a_namespace_and_a_quota(
    det: Det, cluster_admin: FakeClusterAdmin, cid: str, world: World
) -> None:
    out = det("workspace", "create", "Big Lab", "--auto-create-namespace", "--resource-quota", "4").out
    name = f"biglab-rel-{cid}-{ident(det, 'Big Lab')}"
    assert f"Workspace Big Lab is bound to namespace {name}" in out
    assert cluster_admin.namespaces[name]
    assert cluster_admin.quotas[name] == 4
    assert made(world)[name] is False
    assert det("workspace", "describe", "Big Lab", "--json").json()["autoCreatedNamespace"] == name
    det("workspace", "resource-quota", "set", "Big Lab", "8", "--cluster-name", "here")
    assert cluster_admin.quotas[name] == 8


def test_the_name_of_a_namespace_outlives_that_of_its_workspace(
    det: Det, cluster_admin: FakeClusterAdmin, cid: str
) -> None:
    det("workspace", "create", "before")
    number = ident(det, "before")
    out = det("workspace", "bindings", "set", "before", "--auto-create-namespace-all-clusters").out
    name = f"before-rel-{cid}-{number}"
    assert f"is bound to namespace {name} for cluster here." in out
    det("workspace", "edit", "before", "--name", "after")
    det("workspace", "bindings", "set", "after", "--namespace", "team")
    assert bound(det, "after") == "team"
    says(det.fails("workspace", "resource-quota", "set", "after", "1"), "not bound to an auto-created namespace")
    det("workspace", "bindings", "set", "after", "--auto-create-namespace", "--cluster-name", "here")
    assert bound(det, "after") == name
    det("workspace", "resource-quota", "set", "after", "1")


def test_bindings_are_taken_away(det: Det, cluster_admin: FakeClusterAdmin) -> None:
    det("workspace", "create", "loose", "--namespace", "team")
    det("workspace", "bindings", "delete", "loose")
    assert bound(det, "loose") == "default"
    says(det.fails("workspace", "bindings", "delete", "loose"), "tried to delete default binding for cluster here")
    det("workspace", "bindings", "set", "loose", "--namespace", "team")
    # The default namespace is what there is without a binding.
    det("workspace", "bindings", "set", "loose", "--namespace", "default")
    assert bound(det, "loose") == "default"
    says(det.fails("workspace", "bindings", "delete", "loose"), "tried to delete default binding for cluster here")


def test_the_default_namespace_goes_before_that_of_a_pool(
    world: World, cluster_admin: FakeClusterAdmin, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER.replace("pool_name: gpus", "pool_name: gpus, kubernetes_namespace: theirs"))
    settings = {**world.settings, "cluster_config": str(path)}
    with dataclasses.replace(world, settings=settings).api("pools") as other:
        det = Det(url=other.url, home=tmp_path / "det")
        det("user", "login", "admin", answers=[""])
        det("workspace", "create", "plain", "--namespace", "default")
        assert bound(det, "plain") == "default"
        unbound = "/api/v1/namespace-bindings/workspace-ids-with-default-bindings"
        with other.client() as admin:
            assert ident(det, "plain") not in admin.get(unbound).json()["workspaceIds"]
        det("workspace", "bindings", "delete", "plain")
        says(det.fails("workspace", "bindings", "delete", "plain"), "tried to delete default binding for cluster here")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--namespace", "nowhere"), ("error verifying Kubernetes namespace", "error finding namespace nowhere")),
        (("--namespace", "No/Where"), ("error finding namespace No/Where",)),
        (("--namespace", "team", "--cluster-name", "there"), ("no resource manager with cluster name there",)),
        (
            ("--auto-create-namespace-all-clusters", "--cluster-name", "here"),
            ("cannot specify a cluster name when you request to auto-create a namespace for all clusters",),
        ),
        (("--namespace", "team", "--resource-quota", "3"), ("not bound to an auto-created namespace",)),
        (("--resource-quota", "3"), ("not bound to an auto-created namespace",)),
    ],
)
def test_what_cannot_be_leaves_no_workspace(
    det: Det, cluster_admin: FakeClusterAdmin, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    says(det.fails("workspace", "create", "nothing", *arguments), *words)
    assert "nothing" not in det("workspace", "list", "--json").out


def test_a_refused_request_leaves_no_namespace_behind(
    det: Det, admin: httpx.Client, cluster_admin: FakeClusterAdmin, world: World
) -> None:
    det("workspace", "create", "lean")
    number = ident(det, "lean")
    cluster_admin.refuses[verbs.SET_QUOTA] = FailedPrecondition("slots of this pool are CPU cores")
    before = (dict(cluster_admin.namespaces), made(world))
    own = ("--auto-create-namespace", "--resource-quota", "4")
    says(det.fails("workspace", "create", "lavish", *own), "CPU cores")
    limited = {"autoCreateNamespace": True, "resourceQuota": 4}
    for method, path, body in (
        ("POST", "/api/v1/workspaces", {"name": "lavish", "clusterNamespaceMeta": {"": limited}}),
        ("PATCH", f"/api/v1/workspaces/{number}", {"name": "rich", "clusterNamespaceMeta": {"": limited}}),
        ("POST", f"/api/v1/workspaces/{number}/namespace-bindings", {"clusterNamespaceMeta": {"": limited}}),
    ):
        reply = admin.request(method, path, json=body)
        assert reply.status_code == 400, reply.text
        assert (cluster_admin.namespaces, made(world)) == before, f"{method} {path}"
    assert "lavish" not in det("workspace", "list", "--json").out
    assert bound(det, "lean") == "default"


def test_a_refused_quota_leaves_the_namespace_of_a_workspace_that_has_one(
    det: Det, admin: httpx.Client, cluster_admin: FakeClusterAdmin, cid: str
) -> None:
    det("workspace", "create", "settled", "--auto-create-namespace")
    number = ident(det, "settled")
    own = f"settled-rel-{cid}-{number}"
    cluster_admin.refuses[verbs.SET_QUOTA] = FailedPrecondition("slots of this pool are CPU cores")
    body = {"clusterNamespaceMeta": {"": {"autoCreateNamespace": True, "resourceQuota": 4}}}
    assert admin.patch(f"/api/v1/workspaces/{number}", json=body).status_code == 400
    assert own in cluster_admin.namespaces
    assert bound(det, "settled") == own


def test_a_quota_that_another_one_defeats_is_refused(det: Det, cluster_admin: FakeClusterAdmin, cid: str) -> None:
    det("workspace", "create", "poor", "--auto-create-namespace")
    cluster_admin.other_quotas[f"poor-rel-{cid}-{ident(det, 'poor')}"] = 2
    words = "lower than the request limit you wish to set on this namespace"
    says(det.fails("workspace", "resource-quota", "set", "poor", "3"), words)
    det("workspace", "resource-quota", "set", "poor", "1")


def test_while_the_launcher_is_away_nothing_is_half_done(
    det: Det, launcher: ClusterAdminThread, admin: httpx.Client, cluster_admin: FakeClusterAdmin, cid: str, world: World
) -> None:
    det("workspace", "create", "patient")
    launcher.leave()
    try:
        body = {"name": "early", "clusterNamespaceMeta": {"": {"autoCreateNamespace": True}}}
        reply = admin.post("/api/v1/workspaces", json=body)
        assert reply.status_code == 503, reply.text
        assert "retry-after" in reply.headers
        assert "the launcher of resource pool gpus cannot do this now, try again" in reply.text
        says(det.fails("workspace", "bindings", "set", "patient", "--namespace", "team"), "try again")
        says(det.fails("workspace", "bindings", "set", "patient", "--auto-create-namespace"), "try again")
    finally:
        launcher.come()
    assert "early" not in det("workspace", "list", "--json").out
    assert bound(det, "patient") == "default"
    assert det("workspace", "describe", "patient", "--json").json()["autoCreatedNamespace"] is None
    # What was about to be made is remembered, for somebody to look whether it was.
    assert sum(name.startswith("early-rel-") and at_work for name, at_work in made(world).items()) == 1
    det("workspace", "edit", "patient", "--name", "rewarded")
    det("workspace", "bindings", "set", "rewarded", "--auto-create-namespace")
    assert bound(det, "rewarded") == f"patient-rel-{cid}-{ident(det, 'rewarded')}"


def test_a_request_that_took_too_long_does_not_take_what_may_be_deleted(
    admin: httpx.Client, cluster_admin: FakeClusterAdmin, world: World
) -> None:
    def expire() -> None:
        cluster_admin.on_asked = None
        world.in_database(lambda c: c.execute(text("UPDATE auto_created_namespaces SET claimed_until = now()")))

    cluster_admin.on_asked = expire
    body = {"name": "slow", "clusterNamespaceMeta": {"": {"autoCreateNamespace": True}}}
    reply = admin.post("/api/v1/workspaces", json=body)
    assert (reply.status_code, "took too long" in reply.text) == (503, True), reply.text
    assert "slow" not in admin.get("/api/v1/workspaces").text


def test_an_api_that_dies_at_work_leaves_a_note_and_no_workspace(
    admin: httpx.Client, cluster_admin: FakeClusterAdmin, world: World
) -> None:
    body = {"name": "orphan", "clusterNamespaceMeta": {"": {"autoCreateNamespace": True}}}
    with world.api("mortal") as mortal, mortal.client() as client:

        def kill() -> None:
            cluster_admin.on_asked = None
            mortal.process.kill()

        cluster_admin.on_asked = kill
        with pytest.raises(httpx.TransportError):
            client.post("/api/v1/workspaces", json=body)
    assert "orphan" not in admin.get("/api/v1/workspaces").text
    [(name, is_at_work)] = [one for one in made(world).items() if one[0].startswith("orphan-")]
    wait_until(lambda: name in cluster_admin.namespaces, what="the launcher did what it was asked")
    assert is_at_work, "the scheduler deletes it when the claim has expired"


def test_a_change_of_a_workspace_can_bind_it(
    admin: httpx.Client, det: Det, cluster_admin: FakeClusterAdmin, cid: str
) -> None:
    det("workspace", "create", "patched")
    number = ident(det, "patched")
    meta: dict[str, Any] = {"here": {"namespace": "team", "clusterName": "here"}}
    reply = admin.patch(f"/api/v1/workspaces/{number}", json={"clusterNamespaceMeta": meta})
    expected = {"workspaceId": number, "namespace": "team", "clusterName": "here", "autoCreateNamespace": False}
    assert reply.json()["namespaceBindings"] == {"here": expected}
    reply = admin.patch(
        f"/api/v1/workspaces/{number}",
        json={"name": "patched too", "clusterNamespaceMeta": {"": {"autoCreateNamespace": True, "resourceQuota": 2}}},
    )
    own = reply.json()["namespaceBindings"]["here"]["namespace"]
    assert own == f"patched-rel-{cid}-{number}"
    assert cluster_admin.quotas[own] == 2
    meta = {"here": {"namespace": "nowhere"}}
    reply = admin.patch(f"/api/v1/workspaces/{number}", json={"name": "no", "clusterNamespaceMeta": meta})
    assert reply.status_code == 400
    assert bound(det, "patched too") == own
    reply = admin.patch(f"/api/v1/workspaces/{number}", json={"autoCreateNamespaceAllClusters": True})
    assert reply.json()["namespaceBindings"]["here"]["namespace"] == own


def test_own_namespaces_are_for_nobody_else(det: Det, cluster_admin: FakeClusterAdmin, cid: str) -> None:
    det("workspace", "create", "owner", "--auto-create-namespace")
    own = f"owner-rel-{cid}-{ident(det, 'owner')}"
    says(det.fails("workspace", "create", "guest", "--namespace", own), "was made for workspace")
    det("workspace", "bindings", "set", "owner", "--namespace", "team")
    det("workspace", "bindings", "set", "owner", "--namespace", own)
    det("workspace", "resource-quota", "set", "owner", "2")


def test_quotas_are_read_from_the_cluster(admin: httpx.Client, det: Det, cluster_admin: FakeClusterAdmin) -> None:
    det("workspace", "create", "counted", "--namespace", "team")
    path = f"/api/v1/workspaces/{ident(det, 'counted')}/get-k8s-resource-quotas"
    assert admin.get(path).json() == {"resourceQuotas": {}}
    cluster_admin.other_quotas["team"] = 2.5
    assert admin.get(path).json() == {"resourceQuotas": {"here": 2.5}}
    assert admin.get("/api/v1/workspaces/999999/get-k8s-resource-quotas").status_code == 404


def test_everything_unbound_is_bound_at_once(
    admin: httpx.Client, det: Det, cluster_admin: FakeClusterAdmin, cid: str
) -> None:
    def unbound() -> list[int]:
        found = admin.get("/api/v1/namespace-bindings/workspace-ids-with-default-bindings").json()["workspaceIds"]
        assert found == sorted(found)
        return list(found)

    det("workspace", "create", "bulk1")
    det("workspace", "create", "bulk2", "--namespace", "team")
    first, second = ident(det, "bulk1"), ident(det, "bulk2")
    assert first in unbound()
    assert second not in unbound()
    path = "/api/v1/namespace-bindings/bulk-auto-create"
    assert admin.post(path, json={"workspaceIds": [first, 999999]}).status_code == 404
    assert first in unbound(), "nothing was done when one of them does not exist"
    assert admin.post(path, json={"workspaceIds": [*unbound(), second]}).status_code == 200
    assert unbound() == []
    assert bound(det, "bulk1") == f"bulk1-rel-{cid}-{first}"
    assert bound(det, "bulk2") == "team"
    assert bound(det, "Uncategorized") == f"uncategorized-rel-{cid}-1"


def test_bindings_of_clusters_that_are_gone_are_shown_and_can_go(
    det: Det, world: World, cluster_admin: FakeClusterAdmin
) -> None:
    det("workspace", "create", "old")
    statement = text("INSERT INTO workspace_namespace_bindings VALUES (:w, 'gone', 'ruins', false)")
    number = ident(det, "old")
    world.in_database(lambda connection: connection.execute(statement, {"w": number}))
    listed = det("workspace", "bindings", "list", "old").out
    assert "gone(stale)" in listed
    assert "ruins" in listed
    det("workspace", "bindings", "delete", "old", "--cluster-name", "gone")
    assert "gone" not in det("workspace", "bindings", "list", "old").out
    words = "no resource manager with cluster name gone"
    says(det.fails("workspace", "bindings", "delete", "old", "--cluster-name", "gone"), words)


def test_namespaces_are_for_administrators(user: httpx.Client, cluster_admin: FakeClusterAdmin) -> None:
    meta = {"clusterNamespaceMeta": {"": {"namespace": "team"}}}
    own = user.post("/api/v1/workspaces", json={"name": "humble"}).json()["workspace"]["id"]
    one = f"/api/v1/workspaces/{own}"
    replies = [
        user.post("/api/v1/workspaces", json={"name": "proud", **meta}),
        user.patch(one, json=meta),
        user.post(f"{one}/namespace-bindings", json=meta),
        user.delete(f"{one}/namespace-bindings"),
        user.post(f"{one}/set-resource-quota", json={"clusterQuotaPairs": {"": 1}}),
        user.post("/api/v1/namespace-bindings/bulk-auto-create", json={"workspaceIds": [own]}),
    ]
    assert [reply.status_code for reply in replies] == [403] * len(replies)
    assert user.get(f"{one}/list-namespace-bindings").status_code == 200


def test_a_workspace_that_is_deleted_leaves_its_namespace_to_the_scheduler(
    det: Det, cluster_admin: FakeClusterAdmin, cid: str, world: World
) -> None:
    det("workspace", "create", "brief", "--auto-create-namespace")
    name = f"brief-rel-{cid}-{ident(det, 'brief')}"
    det("workspace", "delete", "brief", "--yes")
    assert made(world)[name] is False


@pytest.fixture
def nodes(world: World, api: ApiProcess, det: Det) -> None:
    world.publish(
        PoolCapacity(
            pool="gpus",
            backend="kubernetes",
            nodes=tuple(NodeCapacity(name=name, devices=(Device(id="000"),)) for name in ("n1", "n2")),
        )
    )
    wait_until(lambda: "n2" in det("agent", "list", "--csv").out, what="the capacity is seen")


def test_nodes_of_a_cluster_are_marked_before_anything_else(
    det: Det, cluster_admin: FakeClusterAdmin, nodes: None
) -> None:
    def shown() -> list[tuple[str, bool, bool]]:
        return [(one["id"], one["enabled"], one["draining"]) for one in det("agent", "list", "--json").json()]

    det("agent", "disable", "n1", "--drain")
    assert cluster_admin.marks == {"n1": "no-schedule"}
    assert shown() == [("n1", False, True), ("n2", True, False)]
    det("agent", "disable", "n1")
    assert cluster_admin.marks == {"n1": "no-execute"}
    assert shown()[0] == ("n1", False, False)
    det("agent", "enable", "n1")
    assert cluster_admin.marks == {"n1": ""}
    assert shown()[0] == ("n1", True, False)
    refusal = (
        "the service account is missing permissions to patch nodes. Enabling or disabling nodes requires this "
        "permission, however Determined will otherwise still function correctly without these Kubernetes permissions"
    )
    cluster_admin.refuses[verbs.MARK_NODE] = PermissionDenied(refusal)
    says(det.fails("agent", "disable", "n2"), refusal)
    assert shown() == [("n1", True, False), ("n2", True, False)], "what was refused changes nothing"
    cluster_admin.refuses[verbs.MARK_NODE] = Unavailable("the cluster is away")
    says(det.fails("agent", "disable", "n2"), "try again", "the cluster is away")
    assert cluster_admin.asked[-1] == (verbs.MARK_NODE, NodeMarkRequest(node="n2", mark="no-execute"))


def test_nodes_without_slots_are_out_of_sight_and_still_there(
    det: Det, cluster_admin: FakeClusterAdmin, world: World
) -> None:
    nodes = (NodeCapacity(name="control"), NodeCapacity(name="n3", devices=(Device(id="000"),)))
    world.publish(PoolCapacity(pool="gpus", backend="kubernetes", nodes=nodes))
    wait_until(lambda: "n3" in det("agent", "list", "--csv").out, timeout_s=20, what="the capacity is seen")
    assert [one["id"] for one in det("agent", "list", "--json").json()] == ["n3"]
    assert "control" not in det("slot", "list", "--csv").out
    det("agent", "disable", "control")
    assert cluster_admin.marks["control"] == "no-execute"
    det("agent", "enable", "control")
    assert cluster_admin.marks["control"] == ""


def test_the_answer_shows_a_node_as_it_is_now(
    admin: httpx.Client, cluster_admin: FakeClusterAdmin, world: World, nodes: None
) -> None:
    drained = NodeCapacity(name="n1", devices=(Device(id="000"),), enabled=False, draining=True)
    world.publish(PoolCapacity(pool="gpus", backend="kubernetes", nodes=(drained,)))
    wait_until(lambda: _agent(admin)["draining"], what="the launcher's word is heard")
    assert (_agent(admin)["enabled"], _agent(admin)["slots"]["000"]["draining"]) == (False, True)
    agent = admin.post("/api/v1/agents/n1/enable").json()["agent"]
    assert (agent["enabled"], agent["draining"]) == (True, False)
    agent = admin.post("/api/v1/agents/n1/disable", json={}).json()["agent"]
    assert (agent["enabled"], agent["draining"], agent["slots"]["000"]["enabled"]) == (False, False, False)


def test_tasks_are_found_by_their_slots_and_by_their_nodes(
    det: Det, cluster_admin: FakeClusterAdmin, rows: Rows, world: World
) -> None:
    _, job = rows.experiment(name="somewhere")
    pod = ObservedPod(name="det-x-abcde", job="det-x", state="RUNNING", node="n4")
    allocation = rows.allocation(job_id=job, pods=(pod,), name="Trial 9 (Experiment 9)")
    held = tuple(Device(id=f"00{n}", allocation=allocation, container=pod.name) for n in range(2))
    node = NodeCapacity(name="n4", devices=(*held, Device(id="002")))
    world.publish(PoolCapacity(pool="gpus", backend="kubernetes", nodes=(node,)))
    wait_until(lambda: "n4" in det("agent", "list", "--csv").out, timeout_s=20, what="the capacity is seen")
    slots = det("slot", "list", "--json").json()
    assert [slot["allocation_id"] for slot in slots] == [allocation, allocation, "FREE"]
    assert [slot["task_name"] for slot in slots] == ["Trial 9 (Experiment 9)"] * 2 + ["FREE"]
    (resource,) = det("task", "list", "--json").json()[allocation]["resources"]
    assert (resource["resourcesId"], resource["containerId"]) == (allocation, allocation)
    assert resource["resourcesType"] == "k8s-job"
    assert resource["started"]["nativeResourcesId"] == "det-x"
    assert {name: len(devices["devices"]) for name, devices in resource["agentDevices"].items()} == {"n4": 2}
    assert allocation in det("agent", "disable", "--drain", "n4").out, "it is still there"


def _agent(admin: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = admin.get("/api/v1/agents/n1").json()["agent"]
    return found


def test_a_job_is_scheduled_when_all_its_pods_are(det: Det, admin: httpx.Client, rows: Rows) -> None:
    ident, job = rows.experiment(priority=10)
    rows.allocation(job_id=job, state="ASSIGNED", started=False, slots=8)

    def seen() -> list[Any]:
        [shown] = [one for one in det("job", "list", "--json").json()["jobs"] if one["jobId"] == job]
        [pool] = admin.get("/api/v1/job-queues/stats").json()["results"]
        summary = admin.get(f"/api/v1/experiments/{ident}").json()["jobSummary"]
        return [shown["summary"]["state"], summary["state"], shown["allocatedSlots"], pool["stats"]["queuedCount"]]

    waiting = seen()
    assert waiting[:3] == ["STATE_QUEUED", "STATE_QUEUED", 0]
    rows.start(job)
    assert seen() == ["STATE_SCHEDULED", "STATE_SCHEDULED", 8, waiting[3] - 1]


def test_what_runs_in_a_cluster_gets_a_new_priority(det: Det, rows: Rows) -> None:
    task, notebook = rows.task(priority=10)
    rows.allocation(job_id=notebook, task_id=task, name="Notebook (calm-cat)")
    det("job", "update", notebook, "--priority", "20")
    _, job = rows.experiment(priority=10)
    det("job", "update", job, "--priority", "20")
    assert rows.priority_of(notebook) == 20
    assert rows.priority_of(job) == 20
