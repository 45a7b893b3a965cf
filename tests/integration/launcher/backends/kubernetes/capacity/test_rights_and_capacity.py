"""What a launcher may do and see: acceptance items A14 (its part), A15, A18 and A19."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from libs.bus import Bus
from libs.errors import FailedPrecondition, InvalidRequest, PermissionDenied, Unavailable
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from services.launcher.backends.kubernetes.client.api import Refused
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.objects import Named
from services.launcher.backends.kubernetes.client.paths import PRIORITY_CLASSES
from services.launcher.backends.kubernetes.creation.priority_classes import PriorityClasses
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    LauncherHarness,
    Namespace,
    cluster,
    launcher_kubeconfig,
    open_place,
    task,
)

pytestmark = pytest.mark.cluster


def held(capacity: PoolCapacity) -> list[tuple[str | None, str | None]]:
    return [
        (device.allocation, device.container)
        for node in capacity.nodes
        for device in node.devices
        if device.container is not None
    ]


async def test_nodes_and_who_holds_their_slots(harness: LauncherHarness) -> None:
    allocation = await harness.run(task(slots=4))
    seen = await harness.until_running(allocation)
    found = await harness.until_capacity(lambda capacity: sum(each[0] == allocation for each in held(capacity)) == 4)
    assert {node.name for node in found.nodes} >= {f"sim-{index}" for index in range(8)}
    (on,) = (node for node in found.nodes if any(device.allocation == allocation for device in node.devices))
    assert on.name == seen.pods[0].node
    assert (found.slot_type, found.max_slots_per_pod, found.backend) == ("cuda", 4, "kubernetes")
    await harness.withdraw(allocation)
    await harness.until_capacity(lambda capacity: allocation not in {each[0] for each in held(capacity)})


async def test_slots_that_others_hold(harness: LauncherHarness, namespace: Namespace) -> None:
    foreign = {
        "metadata": {"name": f"foreign-{uuid4().hex[:6]}"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            "restartPolicy": "Never",
        },
    }
    await namespace.create(namespace.paths.pods, foreign)
    name = foreign["metadata"]["name"]
    await harness.until_capacity(lambda capacity: held(capacity).count((None, name)) == 2)
    await namespace.delete_pod(name)
    await harness.until_capacity(lambda capacity: (None, name) not in held(capacity))


async def test_a_node_that_comes_is_labelled_and_goes(harness: LauncherHarness, namespace: Namespace) -> None:
    name = f"node-{uuid4().hex[:8]}"
    status = {
        "allocatable": {"nvidia.com/gpu": "3", "cpu": "4"},
        "capacity": {"nvidia.com/gpu": "3", "cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    await namespace.create("/api/v1/nodes", {"metadata": {"name": name}, "spec": {"unschedulable": True}})
    try:
        await namespace.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        found = await harness.until_capacity(
            lambda capacity: any(node.name == name and node.slots == 3 for node in capacity.nodes)
        )
        assert not next(node for node in found.nodes if node.name == name).enabled
        await namespace.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None, "taints": None}})
        await harness.until_capacity(lambda capacity: _node(capacity, name).enabled)
        label = f"determined.ai/cluster-id-{harness.settings.cluster_id}"
        for value in ("no-execute", "no-schedule"):
            await namespace.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {label: value}}})
            found = await harness.until_capacity(lambda capacity: not _node(capacity, name).enabled)
        await harness.until_capacity(lambda capacity: _node(capacity, name).draining)
    finally:
        await namespace.api.delete(f"/api/v1/nodes/{name}")
    await harness.until_capacity(lambda capacity: name not in {node.name for node in capacity.nodes})


async def test_nodes_are_reported_with_what_pods_may_ask_of_them(
    harness: LauncherHarness, namespace: Namespace
) -> None:
    name = f"node-{uuid4().hex[:8]}"
    taint = {"key": "spot", "value": "true", "effect": "PreferNoSchedule"}
    labels = {"kubernetes.io/hostname": name, "gpu": "a100"}
    resources = {"nvidia.com/gpu": "3", "cpu": "3900m", "memory": "1000001Ki", "pods": "9"}
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": True, "taints": [taint]}}
    await namespace.create("/api/v1/nodes", body)
    try:
        status = {"allocatable": resources, "capacity": resources, "conditions": [{"type": "Ready", "status": "True"}]}
        await namespace.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        found = await harness.until_capacity(lambda capacity: _is_whole(capacity, name))
        node, shape = _node(found, name), _shape_of(found, name)
        assert shape.unschedulable
        assert (shape.labels["gpu"], shape.name_labels) == ("a100", ("kubernetes.io/hostname",))
        assert {"spot", "node.kubernetes.io/unschedulable"} <= {each.key for each in shape.taints}
        assert shape.allocatable is not None
        assert shape.allocatable["memory"] + node.spare["memory"] == 1000001 * 1024
        assert {key: shape.allocatable[key] for key in ("cpu", "nvidia.com/gpu", "pods")} == {
            "cpu": 3900,
            "nvidia.com/gpu": 3,
            "pods": 9,
        }
    finally:
        await namespace.api.delete(f"/api/v1/nodes/{name}")


async def test_what_others_request_of_a_node_is_reported(harness: LauncherHarness, namespace: Namespace) -> None:
    name = f"foreign-{uuid4().hex[:6]}"
    requests = {"cpu": "250m", "memory": "64Mi", "nvidia.com/gpu": "1"}
    resources = {"requests": requests, "limits": {"nvidia.com/gpu": "1"}}
    spec = {
        "initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "restartPolicy": "Never",
    }
    await namespace.create(namespace.paths.pods, {"metadata": {"name": name}, "spec": spec})
    found = await harness.until_capacity(lambda capacity: (None, name) in held(capacity))
    (on,) = (node for node in found.nodes if name in {device.container for device in node.devices})
    # Other tests may have pods of theirs there.
    assert on.foreign["cpu"] >= 1000
    assert on.foreign["memory"] >= 64 << 20
    assert on.foreign["nvidia.com/gpu"] >= 1
    assert on.foreign["pods"] >= 1
    await namespace.delete_pod(name)


SLICES = "/apis/resource.k8s.io/v1/resourceslices"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {
    "metadata": {
        "name": "resourceslices.resource.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, stands in for the kind where it is switched off"},
    },
    "spec": {
        "group": "resource.k8s.io",
        "scope": "Cluster",
        "names": {"plural": "resourceslices", "singular": "resourceslice", "kind": "ResourceSlice"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def test_devices_that_are_offered_by_claims_only_are_named(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path
) -> None:
    node, made = f"node-{uuid4().hex[:8]}", []
    try:
        await namespace.create(DEFINITIONS, DEFINITION)
        made.append(f"{DEFINITIONS}/{DEFINITION['metadata']['name']}")
        await eventually(lambda: _is_served(namespace, SLICES))
        await namespace.create("/api/v1/nodes", {"metadata": {"name": node}})
        made.append(f"/api/v1/nodes/{node}")
        offer = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": node},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [],
            },
        }
        await namespace.create(SLICES, offer)
        made.append(f"{SLICES}/{node}")
        config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, sees_cluster=True)
        async with open_place(bus, namespace, config) as harness:
            await harness.start()
            found = await harness.until_capacity(lambda capacity: _is_reported(capacity, node))
            assert _shape_of(found, node).claims_only
            await harness.kill()
    finally:
        for path in reversed(made):
            await namespace.api.delete(path)


async def _is_served(namespace: Namespace, path: str) -> bool:
    try:
        await namespace.read(path)
    except Refused as error:
        if error.code != 404:
            raise
        return False
    return True


def _is_reported(capacity: PoolCapacity, name: str) -> bool:
    return any(node.name == name and node.shape is not None for node in capacity.nodes)


def _is_whole(capacity: PoolCapacity, name: str) -> bool:
    return _is_reported(capacity, name) and "pods" in (_shape_of(capacity, name).allocatable or {})


def _shape_of(capacity: PoolCapacity, name: str) -> ReportedShape:
    shape = _node(capacity, name).shape
    assert shape is not None
    return capacity.shapes[shape]


def _node(capacity: PoolCapacity, name: str) -> NodeCapacity:
    return next(node for node in capacity.nodes if node.name == name)


async def test_the_quota_of_the_namespace_is_shown(harness: LauncherHarness, namespace: Namespace) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "6"}}}
    await namespace.create(namespace.paths.quotas, body)
    await harness.until_capacity(lambda capacity: capacity.quota_slots == 6)
    await namespace.api.delete(f"{namespace.paths.quotas}/q")
    await harness.until_capacity(lambda capacity: capacity.quota_slots is None)


async def test_with_rights_in_the_namespace_alone_everything_else_works(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path
) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "6"}}}
    await namespace.create(namespace.paths.quotas, body)
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, sees_cluster=False)
    async with open_place(bus, namespace, config) as harness:
        await harness.start()
        found = await harness.until_capacity(lambda capacity: capacity.quota_slots == 6 and capacity.slots == 6)
        assert [node.slots for node in found.nodes] == [4, 2]
        allocation = await harness.run(task(slots=2, notes={"run-seconds": "0.5"}, priority=60))
        await harness.until_begun(allocation)
        assert harness.text(allocation)
        (pod,) = await namespace.pods(f"determined={allocation}")
        assert pod["spec"].get("priorityClassName") is None
        ended = await harness.until_ended(allocation)
        assert [each.exit_code for each in ended.pods] == [0]
        await harness.withdraw(allocation)
        await namespace.until_empty()


async def test_a_quota_that_counts_objects_is_no_capacity(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path
) -> None:
    """As the one of the chart: a launcher that may not see nodes has the slots that it is told, or none."""
    hard = {"count/jobs.batch": "7", "count/pods": "9", "count/networkpolicies.networking.k8s.io": "9"}
    await namespace.create(namespace.paths.quotas, {"metadata": {"name": "objects"}, "spec": {"hard": hard}})
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, sees_cluster=False)
    for assumed, slots in ((None, 0), (5, 5)):
        async with open_place(bus, namespace, config) as harness:
            harness.settings = msgspec.structs.replace(harness.settings, assumed_slots=assumed)
            await harness.start()
            found = await harness.until_capacity(lambda capacity: capacity.slots == slots)  # noqa: B023
            assert found.quota_slots is None
            assert sum(node.slots for node in found.nodes) == slots
            await harness.kill()


async def test_capacity_may_also_be_said(bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path) -> None:
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, sees_cluster=False)
    async with open_place(bus, namespace, config) as harness:
        harness.settings = msgspec.structs.replace(harness.settings, assumed_slots=8)
        await harness.start()
        found = await harness.until_capacity(lambda capacity: capacity.slots == 8)
        assert found.quota_slots is None


async def test_one_priority_class_for_all_tasks_of_a_priority(harness: LauncherHarness, namespace: Namespace) -> None:
    allocations = [await harness.run(task(slots=1, priority=61)) for _ in range(2)]
    for allocation in allocations:
        await harness.until_running(allocation)
        (pod,) = await namespace.pods(f"determined={allocation}")
        assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == ("determined-priority-61", 61)
        assert pod["spec"]["preemptionPolicy"] == "Never"


async def test_a_class_that_somebody_deletes_is_made_again_for_the_pods_that_need_it(
    idle: LauncherHarness, kubeconfig: Path
) -> None:
    idle.settings = msgspec.structs.replace(idle.settings, stuck_grace_s=60.0)
    await idle.start()
    await idle.until_running(await idle.run(task(slots=1, priority=67)))
    async with connect(KubernetesSettings(kubeconfig=str(kubeconfig))) as admin:
        await admin.delete(f"{PRIORITY_CLASSES}/determined-priority-67")
    await idle.until_running(await idle.run(task(slots=1, priority=67)))


async def test_classes_are_listed_again(kubeconfig: Path) -> None:
    path = f"{PRIORITY_CLASSES}/determined-priority-68"
    async with connect(KubernetesSettings(kubeconfig=str(kubeconfig))) as admin:
        classes = PriorityClasses(admin, mode="auto")
        await classes.look()
        assert await classes.of(task(priority=68)) == "determined-priority-68"
        await admin.delete(path)
        await classes.look_again()
        with pytest.raises(Refused, match="not found"):
            await admin.get(path, Named)  # nobody needs it now
        assert await classes.of(task(priority=68)) == "determined-priority-68"
        assert (await admin.get(path, Named)).metadata.name == "determined-priority-68"
        await admin.delete(path)
        classes.missing("determined-priority-68")
        await classes.look_again()
        assert (await admin.get(path, Named)).metadata.name == "determined-priority-68"  # somebody's pod needs it


async def test_a_namespace_that_does_not_exist(idle: LauncherHarness) -> None:
    idle.settings = msgspec.structs.replace(idle.settings, namespace="not-there")
    with pytest.raises((FailedPrecondition, PermissionDenied), match="not-there"):
        await idle.start()


async def test_a_namespace_that_does_not_exist_for_somebody_who_may_know(
    idle: LauncherHarness, kubeconfig: Path
) -> None:
    idle.settings = msgspec.structs.replace(idle.settings, namespace="not-there", kubeconfig=str(kubeconfig))
    with pytest.raises(FailedPrecondition, match='error finding namespace not-there: namespaces "not-there" not found'):
        await idle.start()


async def test_the_pools_namespace_is_that_of_the_cluster_configuration(
    idle: LauncherHarness, namespace: Namespace
) -> None:
    idle.settings = msgspec.structs.replace(idle.settings, namespace="")
    idle.cluster = cluster(resource_pools=[{"pool_name": idle.pool, "kubernetes_namespace": namespace.name}])
    await idle.start()
    allocation = await idle.run(task())
    await idle.until_running(allocation)


async def test_a_namespace_that_is_being_deleted_refuses_with_words(
    harness: LauncherHarness, namespace: Namespace
) -> None:
    hold = {"metadata": {"name": "hold", "finalizers": ["test/hold"]}}
    await namespace.create(namespace.paths.config_maps, hold)
    await namespace.api.delete(namespace.paths.namespace)
    try:
        allocation = await harness.run(task())
        ended = await harness.until_ended(allocation)
        assert ended.failure == "LAUNCH_ERROR"
        assert "being terminated" in ended.message
    finally:
        await namespace.api.patch(f"{namespace.paths.config_maps}/hold", {"metadata": {"finalizers": None}})


async def test_without_the_role_the_launcher_says_what_is_missing(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path
) -> None:
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path)
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace.name}/roles/resolute-launcher"
    await namespace.api.delete(path)
    async with open_place(bus, namespace, config) as harness:

        async def refuses() -> bool:
            try:
                await harness.start()
            except PermissionDenied as error:
                return "cannot list resource" in str(error) and "role.yaml" in str(error)
            await harness.kill()
            return False

        await eventually(refuses)


BROKEN = [
    ("", "names no server|not a usable kubeconfig"),
    ("a: [b", "is not YAML"),
    ("apiVersion: v1\nkind: Config\n", "not a usable kubeconfig"),
    ("apiVersion: v1\nclusters: 5\ncontexts: x\ncurrent-context: y\n", "not a usable kubeconfig"),
]


@pytest.mark.parametrize(("content", "words"), BROKEN)
async def test_a_kubeconfig_that_does_not_work(idle: LauncherHarness, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "broken"
    path.write_text(content)
    idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(path))
    with pytest.raises(InvalidRequest, match=words):
        await idle.start()


async def test_a_kubeconfig_that_is_not_there(idle: LauncherHarness, tmp_path: Path) -> None:
    idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(tmp_path / "none"))
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        await idle.start()


async def test_a_server_that_does_not_answer(idle: LauncherHarness, tmp_path: Path) -> None:
    path = tmp_path / "dead"
    text = Path(idle.settings.kubeconfig or "").read_text()
    path.write_text(text.replace(text[text.index("https://") :].split()[0], "https://127.0.0.1:9"))
    idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(path), connect_patience_s=0)
    with pytest.raises(Unavailable, match=r"cannot reach the Kubernetes API server https://127\.0\.0\.1:9"):
        await idle.start()


async def test_a_token_that_is_refused(idle: LauncherHarness, tmp_path: Path) -> None:
    path = tmp_path / "forged"
    text = Path(idle.settings.kubeconfig or "").read_text()
    token = text[text.index("token: ") :].split()[1]
    path.write_text(text.replace(token, "forged"))
    idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(path))
    with pytest.raises(PermissionDenied, match="Unauthorized"):
        await idle.start()


async def test_credentials_that_are_replaced_are_read_again(idle: LauncherHarness) -> None:
    path = Path(idle.settings.kubeconfig or "")
    right = path.read_text()
    token = right[right.index("token: ") :].split()[1]
    await idle.start()
    assert idle.backend is not None
    api = idle.backend._teardown._api
    api._client.configuration.api_key["BearerToken"] = "Bearer expired"
    assert token in path.read_text()
    allocation = await idle.run(task())
    await idle.until_running(allocation)


async def test_without_a_cluster_id_nothing_is_touched(idle: LauncherHarness) -> None:
    idle.settings = KubernetesSettings(kubeconfig=idle.settings.kubeconfig, namespace=idle.settings.namespace)
    with pytest.raises(InvalidRequest, match=r"kubernetes\.cluster_id is required"):
        await idle.start()
