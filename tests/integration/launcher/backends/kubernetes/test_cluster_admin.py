"""What a launcher is asked by the api: namespaces of workspaces, quotas, marks on nodes (A14, A15, A18)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from libs.bus import Bus
from libs.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied
from libs.events import cluster_admin
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.cluster_admin import ClusterNamespaceRequest, Done, NodeMarkRequest, Quota, SlotQuotaRequest
from libs.events.subjects import launcher_rpc
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    POOL,
    LauncherHarness,
    Namespace,
    account_of,
    cluster,
    grant,
    launcher_kubeconfig,
    new_namespace,
    open_place,
    task,
)

pytestmark = pytest.mark.cluster

GPU = "requests.nvidia.com/gpu"


class ClusterAdminClient:
    """The api, as far as launchers know it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def find(self, namespace: str) -> None:
        await self._ask(cluster_admin.FIND_NAMESPACE, ClusterNamespaceRequest(namespace=namespace), Done)

    async def create(self, namespace: str) -> None:
        await self._ask(cluster_admin.CREATE_NAMESPACE, ClusterNamespaceRequest(namespace=namespace), Done)

    async def delete(self, namespace: str) -> None:
        await self._ask(cluster_admin.DELETE_NAMESPACE, ClusterNamespaceRequest(namespace=namespace), Done)

    async def quota(self, namespace: str) -> float | None:
        slots: float | None = (
            await self._ask(cluster_admin.GET_QUOTA, ClusterNamespaceRequest(namespace=namespace), Quota)
        ).slots
        return slots

    async def limit(self, namespace: str, slots: int) -> None:
        await self._ask(cluster_admin.SET_QUOTA, SlotQuotaRequest(namespace=namespace, slots=slots), Done)

    async def mark(self, node: str, mark: Any) -> None:
        await self._ask(cluster_admin.MARK_NODE, NodeMarkRequest(node=node, mark=mark), Done)

    async def _ask(self, verb: str, asked: msgspec.Struct, kind: Any) -> Any:
        answer = await self._bus.request(launcher_rpc(POOL, verb), msgspec.json.encode(asked), timeout_s=20)
        return msgspec.json.decode(answer, type=kind)


@pytest.fixture
def admin(bus: Bus) -> ClusterAdminClient:
    return ClusterAdminClient(bus)


@pytest.fixture
async def mighty(bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher makes namespaces; it runs."""
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, makes_namespaces=True)
    async with open_place(bus, namespace, config) as harness:
        harness.settings = msgspec.structs.replace(harness.settings, cluster_id=str(uuid4()))
        await harness.start()
        yield harness


@pytest.fixture
async def modest(bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher has nothing but its Role; it runs."""
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, sees_cluster=False)
    async with open_place(bus, namespace, config) as harness:
        await harness.start()
        yield harness


@pytest.fixture
async def new(namespace: Namespace) -> AsyncIterator[Namespace]:
    """A namespace that does not exist yet, and does not any more afterwards."""
    made = Namespace(namespace.api, f"test-{uuid4().hex[:12]}")
    try:
        yield made
    finally:
        for pod in await made.pods(""):
            await made.delete_pod(pod["metadata"]["name"], grace_s=0)
        await made.api.delete(made.paths.namespace)


async def test_a_namespace_is_made_used_limited_and_deleted(
    mighty: LauncherHarness, admin: ClusterAdminClient, new: Namespace
) -> None:
    await admin.create(new.name)
    await admin.create(new.name)
    made = await new.read(new.paths.namespace)
    assert made["metadata"]["labels"]["determined"] == new.name
    await admin.find(new.name)
    assert await admin.quota(new.name) is None
    await admin.limit(new.name, 1)
    assert await admin.quota(new.name) == 1
    quota = await new.read(new.paths.quota(f"{new.name}-quota"))
    assert quota["spec"]["hard"] == {GPU: "1"}
    assert quota["metadata"]["labels"]["determined"] == new.name
    allocation = await mighty.run(task(slots=2), namespace=new.name)
    await mighty.until(allocation, lambda seen: seen.quota_blocked, timeout_s=40)
    assert any("exceeded quota" in text for text in mighty.text(allocation))
    found = await mighty.until_capacity(lambda capacity: capacity.quota_slots_of == {new.name: 1})
    assert found.quota_slots is None
    assert await new.pods() == []
    await admin.limit(new.name, 2)
    await mighty.until_capacity(lambda capacity: capacity.quota_slots_of == {new.name: 2})
    running = await mighty.until(
        allocation, lambda seen: bool(seen.pods) and seen.pods[0].state == "RUNNING", timeout_s=90
    )
    assert running.quota_blocked is False
    await mighty.until_capacity(lambda capacity: capacity.quota_slots_of == {new.name: 2})  # ours are not taken off
    await admin.delete(new.name)
    ended = await mighty.until_ended(allocation, timeout_s=60)
    assert not ended.stopped

    said = set()

    async def is_gone() -> bool:
        await admin.delete(new.name)
        try:
            await admin.find(new.name)
        except NotFound:
            return True
        except FailedPrecondition as error:
            said.add(str(error))
        return False

    await eventually(is_gone, timeout_s=60)
    assert said <= {f"error finding namespace {new.name}: it is being deleted"}


async def test_quotas_of_others(mighty: LauncherHarness, admin: ClusterAdminClient, new: Namespace) -> None:
    await admin.create(new.name)
    theirs = {"metadata": {"name": "theirs"}, "spec": {"hard": {GPU: "4", "pods": "10"}}}
    await new.create(new.paths.quotas, theirs)
    await admin.limit(new.name, 4)
    with pytest.raises(FailedPrecondition, match="lower than the request limit you wish to set on this namespace"):
        await admin.limit(new.name, 5)
    assert await admin.quota(new.name) == 4
    await admin.limit(new.name, 0)
    assert await admin.quota(new.name) == 0
    with pytest.raises(InvalidRequest):
        await admin.limit(new.name, -1)


async def test_namespaces_that_were_not_made_for_a_workspace_are_left_alone(
    mighty: LauncherHarness, admin: ClusterAdminClient, kubeconfig: Path
) -> None:
    async with new_namespace(kubeconfig) as plain:
        await admin.create(plain.name)  # whoever made it may bind it
        await admin.find(plain.name)
        with pytest.raises(FailedPrecondition, match=r"cannot set quota on .*Namespace needs determined label"):
            await admin.limit(plain.name, 1)
        with pytest.raises(FailedPrecondition, match="Namespace needs determined label"):
            await admin.delete(plain.name)
        labels = {"determined": plain.name, "resolute/cluster-id": "another"}
        await plain.api.patch(plain.paths.namespace, {"metadata": {"labels": labels}})
        with pytest.raises(FailedPrecondition, match="belongs to another installation"):
            await admin.delete(plain.name)
        of_older_master = {"determined": plain.name, "resolute/cluster-id": None}
        await plain.api.patch(plain.paths.namespace, {"metadata": {"labels": of_older_master}})
        await admin.limit(plain.name, 3)
        own = mighty.namespace
        await own.api.patch(own.paths.namespace, {"metadata": {"labels": {"determined": own.name}}})
        with pytest.raises(FailedPrecondition, match=f"it is that of resource pool {POOL}"):
            await admin.delete(own.name)


async def test_what_is_not_there(mighty: LauncherHarness, admin: ClusterAdminClient) -> None:
    with pytest.raises(NotFound, match=r'^error finding namespace not-there: namespaces "not-there" not found$'):
        await admin.find("not-there")
    with pytest.raises(NotFound, match=r"^error finding namespace not-there: "):
        await admin.limit("not-there", 1)
    await admin.delete("not-there")
    assert await admin.quota("not-there") is None
    for name in ("", "Not a name", "kube-system/pods/x", "a" * 64):
        for question in (admin.find, admin.create, admin.delete, admin.quota):
            with pytest.raises(InvalidRequest, match="no namespace can have this name"):
                await question(name)


async def test_slots_that_are_cores_are_not_limited(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path, admin: ClusterAdminClient, new: Namespace
) -> None:
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, makes_namespaces=True)
    async with open_place(bus, namespace, config) as harness:
        harness.settings = msgspec.structs.replace(harness.settings, cluster_id=str(uuid4()))
        manager = cluster().resource_manager
        cores = msgspec.structs.replace(manager.slot_resource_requests, cpu=2.0)
        manager = msgspec.structs.replace(manager, slot_type="cpu", slot_resource_requests=cores)
        harness.cluster = msgspec.structs.replace(harness.cluster, resource_manager=manager)
        await harness.start()
        await admin.create(new.name)
        with pytest.raises(FailedPrecondition, match="are CPU cores"):
            await admin.limit(new.name, 1)
        body = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "5"}}}
        await new.create(new.paths.quotas, body)
        assert await admin.quota(new.name) == 2.5


async def test_with_a_role_alone_refusals_say_what_is_missing(
    modest: LauncherHarness, admin: ClusterAdminClient, kubeconfig: Path
) -> None:
    await admin.find(modest.namespace.name)
    with pytest.raises(PermissionDenied, match=r"cannot create resource .namespaces.*cluster-role-workspaces\.yaml"):
        await admin.create("not-there")
    with pytest.raises(PermissionDenied, match=r"error finding namespace kube-system: .*role\.yaml"):
        await admin.find("kube-system")
    with pytest.raises(PermissionDenied, match=r"cluster-role-workspaces\.yaml"):
        await admin.delete("not-there")
    async with new_namespace(kubeconfig) as given:
        await given.api.patch(given.paths.namespace, {"metadata": {"labels": {"determined": given.name}}})
        await grant(given, account_of(modest))
        await admin.find(given.name)
        await admin.create(given.name)  # somebody did already
        assert await admin.quota(given.name) is None
        with pytest.raises(PermissionDenied, match=r"cannot create resource .resourcequotas.*workspaces\.yaml"):
            await admin.limit(given.name, 1)
        allocation = await modest.run(task(), namespace=given.name)
        await modest.until_running(allocation)


@asynccontextmanager
async def a_node(namespace: Namespace) -> AsyncIterator[str]:
    """A node that is ready, and on which nothing is scheduled by itself."""
    name = f"node-{uuid4().hex[:8]}"
    status = {
        "allocatable": {"nvidia.com/gpu": "1", "cpu": "4"},
        "capacity": {"nvidia.com/gpu": "1", "cpu": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    await namespace.create("/api/v1/nodes", {"metadata": {"name": name}, "spec": {"taints": [taint]}})
    try:
        await namespace.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        yield name
    finally:
        await namespace.api.delete(f"/api/v1/nodes/{name}")


async def test_nodes_are_marked_and_their_marks_are_seen(
    harness: LauncherHarness, admin: ClusterAdminClient, namespace: Namespace
) -> None:
    label = f"determined.ai/cluster-id-{harness.settings.cluster_id}"

    def has(node: str, *, enabled: bool, draining: bool) -> Callable[[PoolCapacity], bool]:
        def is_so(capacity: PoolCapacity) -> bool:
            found: NodeCapacity | None = next((each for each in capacity.nodes if each.name == node), None)
            return found is not None and (found.enabled, found.draining) == (enabled, draining)

        return is_so

    async with a_node(namespace) as node:
        await harness.until_capacity(has(node, enabled=True, draining=False))
        for mark, draining in (("no-execute", False), ("no-schedule", True)):
            for _ in range(2):
                await admin.mark(node, mark)
            labels = (await namespace.read(f"/api/v1/nodes/{node}"))["metadata"]["labels"]
            assert labels[label] == mark
            await harness.until_capacity(has(node, enabled=False, draining=draining))
        for _ in range(2):
            await admin.mark(node, "")
        labels = (await namespace.read(f"/api/v1/nodes/{node}"))["metadata"].get("labels", {})
        assert label not in labels
        await harness.until_capacity(has(node, enabled=True, draining=False))
    for missing in (node, "", "../pods"):
        with pytest.raises(NotFound, match=f"^node '{missing}' not found$"):
            await admin.mark(missing, "no-execute")


async def test_without_the_right_to_it_marking_says_so(modest: LauncherHarness, admin: ClusterAdminClient) -> None:
    with pytest.raises(PermissionDenied) as refusal:
        await admin.mark("sim-0", "no-execute")
    assert (
        "is missing permissions to patch nodes. Enabling or disabling nodes requires this permission, however "
        "Determined will otherwise still function correctly without these Kubernetes permissions"
    ) in str(refusal.value)
