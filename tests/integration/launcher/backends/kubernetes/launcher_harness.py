"""A launcher in a namespace of its own, with the rights of ``deploy/helm/rights`` and nothing more."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import yaml

from libs.bus import Bus, CoreMessage
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.events.capacity import PoolCapacity
from libs.events.logs import LogBatch
from libs.events.observations import AllocationObserved
from libs.events.orders import Environment, Order, Owner, TaskSpec
from libs.events.subjects import CAPACITY_BUCKET, ORDERS_BUCKET, capacity_key, observed_by, order_key
from libs.ids import new_random_part
from libs.run_until_first_exits import end, run_until_first_exits
from libs.serving.readiness import Readiness
from services.launcher.backends.kubernetes.backend import KubernetesBackend
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.paths import Paths
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from services.launcher.backends.kubernetes.wiring.opening import open_kubernetes_backend
from services.launcher.cluster_admin import verbs_of
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust
from services.launcher.loop import OrderLoop
from services.launcher.placeholder_loop import PlaceholderLoop
from services.launcher.reports import Reports
from services.launcher.rpc import serve_rpcs
from services.launcher.settings import LoopSettings
from services.launcher.task_lines import Lines
from tests.harness.waiting import eventually

RIGHTS = Path(__file__).parents[5] / "deploy" / "helm" / "rights"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POOL = "gpus"
LONG_S = 60.0
"""What a cluster that others use as well may take for anything."""
CLUSTER_ID = "0a1b2c3d-1111-4222-8333-444455556666"
TASKS = TaskSettings(master_url="http://master:8080", log_intake_url="http://logs:8090")

Json = dict[str, Any]


def task(task_id: str = "", *, notes: Mapping[str, str] | None = None, **fields: Any) -> TaskSpec:
    """A command without slots; ``notes`` steer what the simulated node does with its pods."""
    task_id = task_id or str(uuid4())
    pod_spec = {"metadata": {"annotations": {f"sim/{key}": value for key, value in (notes or {}).items()}}}
    values: Json = {
        "task": task_id,
        "task_type": "COMMAND",
        "name": "Command (test)",
        "description": f"cmd-{task_id}",
        "cluster_id": CLUSTER_ID,
        "owner": Owner(username="alice", uid=1000, gid=1000),
        "slots": 0,
        "session_token": "session-token",
        "user_token": "user-token",
        "argv": ("true",),
        "environment": Environment(image="local/python:3.11", pod_spec=pod_spec),
    }
    return TaskSpec(**{**values, **fields})


def cluster(**fields: Any) -> ClusterConfig:
    """One pool of GPUs, at most four in a pod."""
    body: Json = {
        "resource_manager": {
            "type": "kubernetes",
            "slot_type": "cuda",
            "max_slots_per_pod": 4,
            "default_compute_resource_pool": POOL,
            "default_aux_resource_pool": POOL,
        },
        "resource_pools": [{"pool_name": POOL}],
    }
    return msgspec.convert({**body, **fields}, ClusterConfig)


class Namespace:
    """A namespace, seen with the eyes of an administrator."""

    def __init__(self, api: KubeApi, name: str) -> None:
        self.api = api
        self.name = name
        self.paths = Paths(name)

    async def read(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        return await self.api.get(path, dict[str, Any], query)

    async def items(self, path: str, selector: str = "") -> list[Json]:
        found: list[Json] = (await self.read(path, {"labelSelector": selector} if selector else None))["items"]
        return found

    async def jobs(self, selector: str = "determined") -> list[Json]:
        return await self.items(self.paths.jobs, selector)

    async def pods(self, selector: str = "determined") -> list[Json]:
        return await self.items(self.paths.pods, selector)

    async def remains(self) -> list[str]:
        """Kind and name of everything that belongs to allocations."""
        found = []
        owned = (self.paths.config_maps, self.paths.secrets, self.paths.services, self.paths.network_policies)
        for path in (self.paths.jobs, self.paths.pods, *owned):
            kind = path.rsplit("/", 1)[1]
            found += [f"{kind}/{item['metadata']['name']}" for item in await self.items(path, "determined")]
        return found

    async def until_failed(self, allocation: str) -> None:
        """Wait until its only pod has failed, whether or not a launcher looks."""

        async def has_failed() -> bool:
            return [pod["status"]["phase"] for pod in await self.pods(f"determined={allocation}")] == ["Failed"]

        await eventually(has_failed)

    async def until_empty(self, timeout_s: float = LONG_S) -> None:
        async def is_empty() -> bool:
            return not await self.remains()

        try:
            await eventually(is_empty, timeout_s=timeout_s, every_s=0.1)
        except AssertionError as error:
            raise AssertionError(f"still there: {await self.remains()}") from error

    async def create(self, path: str, body: Json) -> Json:
        return await self.api.create(path, body, dict[str, Any])

    async def create_cluster_wide(self, path: str, body: Json) -> None:
        """Create something that tests share, or make it as it should be."""
        try:
            await self.api.create(path, body, dict[str, Any])
        except Refused as error:
            if error.code != 409:
                raise
            await self.api.patch(f"{path}/{body['metadata']['name']}", body)

    async def delete_pod(self, name: str, *, grace_s: int | None = None) -> None:
        await self.api.delete(self.paths.pod(name), None if grace_s is None else {"gracePeriodSeconds": grace_s})

    async def note(self, path: str, **notes: str | None) -> None:
        await self.api.patch(path, {"metadata": {"annotations": {f"sim/{key}": value for key, value in notes.items()}}})


@asynccontextmanager
async def new_namespace(kubeconfig: Path) -> AsyncIterator[Namespace]:
    """A namespace for one test; it and everything in it is gone afterwards."""
    async with connect(KubernetesSettings(kubeconfig=str(kubeconfig))) as api:
        namespace = Namespace(api, f"test-{uuid4().hex[:12]}")
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace.name}}, Json)
        try:
            # The controller makes the service account that pods run as.
            async def has_account() -> bool:
                return bool(await namespace.items(f"{namespace.paths.namespace}/serviceaccounts"))

            await eventually(has_account)
            yield namespace
        finally:
            for pod in await namespace.pods(""):
                await namespace.delete_pod(pod["metadata"]["name"], grace_s=0)
            await api.delete(namespace.paths.namespace)
            await api.request(
                "DELETE", f"{RBAC}/clusterrolebindings", query={"labelSelector": f"test={namespace.name}"}
            )


async def launcher_kubeconfig(
    namespace: Namespace,
    kubeconfig: Path,
    directory: Path,
    *,
    sees_cluster: bool = True,
    makes_namespaces: bool = False,
) -> Path:
    """A kubeconfig of a service account with the Role, and with the ClusterRoles that are asked for."""
    account = f"launcher-{uuid4().hex[:8]}"
    await namespace.create(f"{namespace.paths.namespace}/serviceaccounts", {"metadata": {"name": account}})
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace.name}
    await grant(namespace, subject)
    asked = {"cluster-role": sees_cluster, "cluster-role-workspaces": makes_namespaces}
    for file in [file for file, is_asked in asked.items() if is_asked]:
        role = yaml.safe_load((RIGHTS / f"{file}.yaml").read_text())
        await namespace.create_cluster_wide(f"{RBAC}/clusterroles", role)
        binding = _binding("ClusterRole", role, f"{account}-{file}", subject)
        binding["metadata"]["labels"] = {"test": namespace.name}
        await namespace.create(f"{RBAC}/clusterrolebindings", binding)
        await _until_in_force(namespace, role, subject, "")
    made = await namespace.create(
        f"{namespace.paths.namespace}/serviceaccounts/{account}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
    )
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": "launcher", "user": {"token": made["status"]["token"]}}]
    config["contexts"] = [
        {"name": "launcher", "context": {"cluster": config["clusters"][0]["name"], "user": "launcher"}}
    ]
    config["current-context"] = "launcher"
    path = directory / f"{account}.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


async def grant(namespace: Namespace, subject: Json) -> None:
    """Give a service account the Role in a namespace."""
    role = _role_of_a_namespace()
    in_namespace = f"{RBAC}/namespaces/{namespace.name}"
    await namespace.create_cluster_wide(f"{in_namespace}/roles", role)
    await namespace.create(f"{in_namespace}/rolebindings", _binding("Role", role, subject["name"], subject))
    await _until_in_force(namespace, role, subject, namespace.name)


async def revoke(namespace: Namespace, subject: Json) -> None:
    """Take what ``grant`` gave."""
    await namespace.api.delete(f"{RBAC}/namespaces/{namespace.name}/rolebindings/{subject['name']}")
    await _until_in_force(namespace, _role_of_a_namespace(), subject, namespace.name, is_granted=False)


def _role_of_a_namespace() -> Json:
    role: Json = yaml.safe_load((RIGHTS / "role.yaml").read_text())
    return role


async def _until_in_force(admin: Namespace, role: Json, subject: Json, where: str, *, is_granted: bool = True) -> None:
    """Wait until the API server lets an account do what a role says, or nothing of it: it takes a moment."""
    user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"

    async def may(rule: Json) -> bool:
        resource, _, part = rule["resources"][0].partition("/")
        asked = {"group": rule["apiGroups"][0], "resource": resource, "subresource": part, "verb": rule["verbs"][-1]}
        review = {"spec": {"user": user, "resourceAttributes": {"namespace": where, **asked}}}
        answer = await admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    async def is_so() -> bool:
        return {await may(rule) for rule in role["rules"]} == {is_granted}

    await eventually(is_so)


def account_of(harness: LauncherHarness) -> Json:
    """The service account of the launcher of a harness, as bindings name it."""
    name = Path(harness.settings.kubeconfig or "").stem
    return {"kind": "ServiceAccount", "name": name, "namespace": harness.namespace.name}


def _binding(kind: str, role: Json, name: str, subject: Json) -> Json:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}


class LauncherHarness:
    """A pool in a namespace; its launcher runs in this process, and can be killed and started again."""

    def __init__(self, bus: Bus, namespace: Namespace, kubeconfig: Path) -> None:
        self.bus = bus
        self.namespace = namespace
        self.pool = POOL
        self.cluster = cluster()
        self.tasks = TASKS
        self.settings = KubernetesSettings(
            kubeconfig=str(kubeconfig), cluster_id=CLUSTER_ID, namespace=namespace.name, stuck_grace_s=1.0
        )
        self.observations: list[AllocationObserved] = []
        self.lines: list[LogBatch] = []
        self.backend: KubernetesBackend | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        opened = asyncio.Event()
        self._running = asyncio.create_task(self._run(opened), name="launcher")
        waiting = asyncio.create_task(opened.wait())
        await asyncio.wait([self._running, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._running.done():
            await self._running

    async def kill(self) -> None:
        """What was under way is given up, as in a process that is killed."""
        if self._running is not None:
            await end(self._running)
            self._running = None

    async def _run(self, opened: asyncio.Event) -> None:
        async def publish(batch: LogBatch) -> None:
            self.lines.append(batch)

        clock, lines = SystemClock(), Lines()
        settings = LoopSettings(absence_grace_s=0, retry_s=0.2)
        async with AsyncExitStack() as stack:
            self.backend = await stack.enter_async_context(
                open_kubernetes_backend(
                    pool=self.pool,
                    settings=self.settings,
                    cluster=self.cluster,
                    tasks=self.tasks,
                    trust=TaskTrust(self.tasks),
                    lines=lines,
                    clock=clock,
                    readiness=Readiness(()),
                )
            )
            reports = Reports(
                pool=self.pool, bus=self.bus, capacity=self.backend.capacity, clock=clock, settings=settings
            )
            loop = OrderLoop(
                pool=self.pool, bus=self.bus, backend=self.backend, reports=reports, clock=clock, settings=settings
            )
            await stack.enter_async_context(
                serve_rpcs(self.bus, pool=self.pool, verbs=verbs_of(self.backend.cluster_admin))
            )
            placeholders = PlaceholderLoop(pool=self.pool, bus=self.bus, backend=self.backend)
            opened.set()
            await run_until_first_exits(
                orders=loop.run(),
                placeholders=placeholders.run(),
                observations=reports.publish_observations(),
                capacity=reports.publish_capacity(),
                task_lines=lines.run(publish),
            )

    async def run(self, spec: TaskSpec, run: int = 1, *, namespace: str = "") -> str:
        """Order a task to run; returns its allocation."""
        allocation = f"{spec.task}.{run}"
        order = Order(
            allocation=allocation,
            pool=self.pool,
            desired="run",
            spec=spec,
            namespace=namespace,
            random_part=new_random_part(),
        )
        await self.order(order)
        return allocation

    async def stop(self, allocation: str, grace_s: float = 5.0, *, namespace: str = "") -> None:
        await self.order(
            Order(allocation=allocation, pool=self.pool, desired="stop", grace_s=grace_s, namespace=namespace)
        )

    async def order(self, order: Order) -> None:
        key = order_key(self.pool, order.allocation)
        await self.bus.bucket(ORDERS_BUCKET).put(key, msgspec.json.encode(order))

    async def withdraw(self, allocation: str) -> None:
        await self.bus.bucket(ORDERS_BUCKET).delete(order_key(self.pool, allocation))

    def told(self, allocation: str) -> list[AllocationObserved]:
        """Observations of an allocation, in the order of their revisions."""
        return sorted(
            (seen for seen in self.observations if seen.allocation == allocation), key=lambda seen: seen.revision
        )

    async def until(
        self, allocation: str, is_so: Callable[[AllocationObserved], bool], *, timeout_s: float = LONG_S
    ) -> AllocationObserved:
        """Wait until the newest observation of an allocation satisfies ``is_so``."""

        def look() -> AllocationObserved | None:
            told = self.told(allocation)
            return told[-1] if told and is_so(told[-1]) else None

        try:
            found = await eventually(look, timeout_s=timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{allocation}: {self.told(allocation)[-1:]}") from error
        assert found is not None
        return found

    async def until_running(self, allocation: str, num_pods: int = 1) -> AllocationObserved:
        return await self.until(
            allocation, lambda seen: len(seen.pods) == num_pods and all(pod.state == "RUNNING" for pod in seen.pods)
        )

    async def until_begun(self, allocation: str) -> AllocationObserved:
        """Wait for the only pod to run, or to have ended: one that runs briefly may never be seen to run."""
        begun = ("RUNNING", "TERMINATED")
        return await self.until(allocation, lambda seen: [pod.state in begun for pod in seen.pods] == [True])

    async def until_ended(self, allocation: str, *, timeout_s: float = LONG_S) -> AllocationObserved:
        return await self.until(allocation, lambda seen: seen.gone, timeout_s=timeout_s)

    async def capacity(self) -> PoolCapacity | None:
        entry = await self.bus.bucket(CAPACITY_BUCKET).get(capacity_key(self.pool))
        return None if entry is None else msgspec.json.decode(entry.value, type=PoolCapacity)

    async def until_capacity(self, is_so: Callable[[PoolCapacity], bool]) -> PoolCapacity:
        async def look() -> PoolCapacity | None:
            found = await self.capacity()
            return found if found is not None and is_so(found) else None

        found = await eventually(look, every_s=0.1)
        assert found is not None
        return found

    def text(self, allocation: str) -> list[str]:
        """What the launcher said in the log of an allocation's task."""
        return [
            line.log.decode().rstrip("\n")
            for batch in self.lines
            if batch.allocation == allocation
            for line in batch.lines
        ]


@asynccontextmanager
async def open_place(bus: Bus, namespace: Namespace, kubeconfig: Path) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher has not been started yet."""
    harness = LauncherHarness(bus, namespace, kubeconfig)

    async def note(message: CoreMessage) -> None:
        harness.observations.append(msgspec.json.decode(message.data, type=AllocationObserved))

    async with bus.subscribe(observed_by(), note):
        try:
            yield harness
        finally:
            await harness.kill()


def decoded(data: Mapping[str, str], key: str) -> str:
    return base64.b64decode(data[key]).decode()


def env_of(job: Json) -> dict[str, Any]:
    containers: Sequence[Json] = job["spec"]["template"]["spec"]["containers"]
    return {entry["name"]: entry for entry in containers[-1]["env"]}


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
