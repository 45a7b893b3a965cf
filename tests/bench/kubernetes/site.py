"""A launcher as a process, its bus, and a namespace that is made for a measurement and gone after it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec

from libs.bus import Bus, BusSettings, CoreMessage, connect_bus
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, TaskSpec
from libs.events.subjects import CAPACITY_BUCKET, ORDERS_BUCKET, capacity_key, observed_by, order_key
from services.launcher.backends.kubernetes.client.api import ONLY_METADATA, Refused
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.objects import ListOf, Named
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from tests.bench.cpu import cpu_s
from tests.bench.idle import resident_mb
from tests.harness import NatsServer
from tests.harness.processes import ServiceProcess
from tests.harness.streams import wipe
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    CLUSTER_ID,
    POOL,
    RBAC,
    Json,
    Namespace,
    cluster,
    launcher_kubeconfig,
)

GIVE_UP_S = 600.0


@dataclass(frozen=True)
class BenchCluster:
    """A cluster to measure on, and a bus."""

    kubeconfig: Path
    nats: NatsServer
    directory: Path


@contextmanager
def cluster_under_test(kubeconfig: Path) -> Iterator[BenchCluster]:
    with tempfile.TemporaryDirectory(prefix="resolute-bench-", dir="/var/tmp") as folder:
        nats = NatsServer(Path(folder) / "nats", dies_with_parent=True)
        nats.start()
        try:
            yield BenchCluster(kubeconfig, nats, Path(folder))
        finally:
            nats.stop()


class Site:
    """A pool in a namespace, and the bus on which its launcher is given orders."""

    def __init__(self, bench: BenchCluster, namespace: Namespace, bus: Bus, kubeconfig: Path) -> None:
        self.namespace = namespace
        self.bus = bus
        self.kubeconfig = kubeconfig
        """With the rights of a launcher and nothing more."""
        self._bench = bench
        self._launcher: ServiceProcess | None = None

    @property
    def settings(self) -> KubernetesSettings:
        return KubernetesSettings(kubeconfig=str(self.kubeconfig), cluster_id=CLUSTER_ID, namespace=self.namespace.name)

    async def launch(self, *, kubeconfig: Path | None = None) -> None:
        """Start a launcher and wait until it takes orders; one that runs already is ended first."""
        self.end_launcher()
        config = self._bench.directory / "cluster.yaml"
        config.write_bytes(msgspec.yaml.encode(cluster()))
        await self.bus.bucket(CAPACITY_BUCKET).delete(capacity_key(POOL))
        launcher = self._launcher = ServiceProcess(
            "services.launcher.main",
            log_path=self._bench.directory / "launcher.log",
            env={
                "RESOLUTE_POOL": POOL,
                "RESOLUTE_BACKEND": "kubernetes",
                "RESOLUTE_BUS__URL": self._bench.nats.url,
                "RESOLUTE_CLUSTER_CONFIG": str(config),
                "RESOLUTE_KUBERNETES__KUBECONFIG": str(kubeconfig or self.kubeconfig),
                "RESOLUTE_KUBERNETES__CLUSTER_ID": CLUSTER_ID,
                "RESOLUTE_KUBERNETES__NAMESPACE": self.namespace.name,
                "RESOLUTE_TASKS__LOG_INTAKE_URL": "http://logs:8090",
            },
            forked=False,
        )
        launcher.start()

        async def takes_orders() -> bool:
            if not launcher.is_running:
                raise RuntimeError(launcher.log())
            return await self.bus.bucket(CAPACITY_BUCKET).get(capacity_key(POOL)) is not None

        await eventually(takes_orders, timeout_s=60, every_s=0.1)

    def end_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.stop()

    def launcher_cpu_s(self) -> float:
        """Of the launcher that runs, as ``launcher_resident_mb``."""
        assert self._launcher is not None
        return cpu_s(self._launcher.pid)

    def launcher_resident_mb(self) -> float:
        assert self._launcher is not None
        return resident_mb(self._launcher.pid)

    async def order(self, specs: Sequence[TaskSpec]) -> list[str]:
        """Order all tasks at once; returns their allocations."""
        orders = orders_of(specs)
        bucket = self.bus.bucket(ORDERS_BUCKET)
        async with asyncio.TaskGroup() as tasks:
            for order in orders:
                tasks.create_task(bucket.put(order_key(POOL, order.allocation), msgspec.json.encode(order)))
        return [order.allocation for order in orders]

    async def withdraw(self, allocations: Sequence[str]) -> None:
        bucket = self.bus.bucket(ORDERS_BUCKET)
        for allocation in allocations:
            await bucket.delete(order_key(POOL, allocation))

    @asynccontextmanager
    async def observing(self, saw: Callable[[AllocationObserved], None]) -> AsyncIterator[None]:
        """``saw`` is told of every observation that reaches the bus while the block runs."""

        async def note(message: CoreMessage) -> None:
            saw(msgspec.json.decode(message.data, type=AllocationObserved))

        async with self.bus.subscribe(observed_by(), note):
            yield

    @asynccontextmanager
    async def running(self, number: int) -> AsyncIterator[asyncio.Event]:
        """Set when so many allocations were observed running since the block began, which must not last too long."""
        running: set[str] = set()
        all_run = asyncio.Event()

        def saw(seen: AllocationObserved) -> None:
            if any(pod.state == "RUNNING" for pod in seen.pods):
                running.add(seen.allocation)
            if len(running) == number:
                all_run.set()

        try:
            async with self.observing(saw), asyncio.timeout(GIVE_UP_S):
                yield all_run
        except TimeoutError as error:
            raise RuntimeError(f"{len(running)} of {number} run: is the cluster too small for all of them?") from error


def orders_of(specs: Sequence[TaskSpec]) -> list[Order]:
    return [Order(allocation=f"{spec.task}.1", pool=POOL, desired="run", spec=spec) for spec in specs]


@asynccontextmanager
async def open_site(bench: BenchCluster, *, waits: bool = True) -> AsyncIterator[Site]:
    """A namespace and a bus with nothing in them; no launcher runs yet.

    All of it is gone after the block, or will be some time later unless ``waits``.
    """
    await wipe(bench.nats.url)
    async with (
        connect_bus(BusSettings(url=bench.nats.url, name="bench")) as bus,
        connect(KubernetesSettings(kubeconfig=str(bench.kubeconfig), request_timeout_s=120)) as api,
    ):
        namespace = Namespace(api, f"bench-{uuid4().hex[:12]}")
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace.name}}, Json)
        site: Site | None = None
        try:
            await _until_account(namespace)
            config = await launcher_kubeconfig(namespace, bench.kubeconfig, bench.directory)
            site = Site(bench, namespace, bus, config)
            yield site
        finally:
            if site is not None:
                site.end_launcher()
            await _remove(namespace, waits=waits)


async def _until_account(namespace: Namespace) -> None:
    """The controller makes the service account that pods run as."""

    async def has_account() -> bool:
        return bool(await namespace.items(f"{namespace.paths.namespace}/serviceaccounts"))

    await eventually(has_account, timeout_s=60)


async def _remove(namespace: Namespace, *, waits: bool) -> None:
    """Delete a namespace with all that is in it, and wait for that if it would disturb another measurement."""
    paths = namespace.paths
    await namespace.api.request(
        "DELETE", f"{RBAC}/clusterrolebindings", query={"labelSelector": f"test={namespace.name}"}
    )
    if not waits:
        return await _delete(namespace)
    # Jobs first, or their controller makes new pods; nobody waits for what runs nowhere.
    await _delete_all(namespace, paths.jobs, {"propagationPolicy": "Background"})
    await _delete_all(namespace, paths.pods, {"gracePeriodSeconds": 0})
    await _delete(namespace)

    async def is_gone() -> bool:
        try:
            await namespace.read(paths.namespace)
        except Refused as error:
            return error.code == 404
        return False

    await eventually(is_gone, timeout_s=GIVE_UP_S, every_s=0.5)
    return None


async def _delete(namespace: Namespace) -> None:
    await namespace.api.delete(namespace.paths.namespace)


async def _delete_all(namespace: Namespace, collection: str, options: Json) -> None:
    """Delete objects one by one, many at once: the server itself deletes collections so slowly that it gives up."""
    found = await namespace.api.get(collection, ListOf[Named], accept=ONLY_METADATA)
    async with asyncio.TaskGroup() as tasks:
        for item in found.items or ():
            tasks.create_task(namespace.api.delete(f"{collection}/{item.metadata.name}", options))
