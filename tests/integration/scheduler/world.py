"""Surroundings of the scheduler in these tests: the api, and a launcher that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

from libs.bus import Bus, CoreMessage, SnapshotEnd
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig
from libs.db.engine import Database
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.cluster_admin import Done
from libs.events.observation_requests import REPORT_AGAIN, ReportAgainRequest
from libs.events.observations import AllocationObserved, ObservedPod
from libs.events.orders import Order
from libs.run_until_first_exits import end
from services.scheduler.controller import SchedulerController
from services.scheduler.settings import EngineSettings, QueueSettings, SchedulerSettings
from tests.harness import eventually
from tests.integration.scheduler.api import Api

KUBERNETES = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes", cluster_name="here", max_slots_per_pod=8),
    resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="other")),
)
USUAL = SchedulerSettings(engine=EngineSettings(log_wait_s=0))  # the launcher of these tests ships no logs
QUICK = SchedulerSettings(
    queue=QueueSettings(plan_interval_s=0.01, resync_s=0.5), engine=EngineSettings(resync_s=0.3, log_wait_s=0)
)
"""For tests that take notifications or whole schedulers away, and wait for what finds out all the same."""


class FakeLauncher:
    """Reads orders and publishes observations; tasks run until a test ends them, and stop when they are told to."""

    def __init__(self, bus: Bus, pool: str = "default") -> None:
        self.bus = bus
        self.pool = pool
        self.orders: dict[str, Order] = {}
        self.specs: dict[str, Order] = {}
        """Every allocation ever ordered to run, with its first order."""
        self.stops: dict[str, Order] = {}
        """Every allocation ever ordered to stop, with its last order to do so."""
        self.reorders: list[str] = []
        """Allocations whose order to run changed after the first."""
        self.on_run: Callable[[Order], Any] | None = None
        """Called for every new allocation instead of reporting that it runs."""
        self.node = "node0"
        """Where pods are seen; "" is nowhere, so that they count as where the planner saw room."""
        self.obeys = True
        """Whether tasks stop when they are told to."""
        self.said: dict[str, AllocationObserved] = {}
        """The last observation of each allocation."""
        self._over: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def offer(self, slots: int = 8, *, nodes: int = 1, **more: Any) -> None:
        """Nodes with free slots."""
        devices = tuple(Device(id=f"{i:03}") for i in range(slots))
        await self.offer_nodes(*(NodeCapacity(name=f"node{n}", devices=devices) for n in range(nodes)), **more)

    async def offer_nodes(self, *nodes: NodeCapacity, aux: int = 100, **more: Any) -> None:
        capacity = PoolCapacity(pool=self.pool, backend="process", nodes=nodes, max_aux_containers_per_node=aux, **more)
        bucket = self.bus.bucket(subjects.CAPACITY_BUCKET)
        await bucket.put(subjects.capacity_key(self.pool), msgspec.json.encode(capacity))

    async def run(self) -> None:
        keys: dict[str, str] = {}
        async with (
            self.bus.serve(subjects.launcher_rpc(self.pool, REPORT_AGAIN), self._report_again),
            aclosing(self.bus.bucket(subjects.ORDERS_BUCKET).watch(subjects.orders_of(self.pool))) as changes,
        ):
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    continue
                if change.value is None:
                    self.orders.pop(keys.get(change.key, ""), None)
                    continue
                order = msgspec.json.decode(change.value, type=Order)
                keys[change.key] = order.allocation
                self.orders[order.allocation] = order
                await self._obey(order)

    async def _obey(self, order: Order) -> None:
        ident = order.allocation
        if order.desired == "stop":
            self.stops[ident] = order
        if order.desired == "run":
            if ident in self.specs:
                self.reorders.append(ident)
                return
            self.specs[ident] = order
            if self.on_run is None:
                await self.see(ident, "RUNNING")
            else:
                task = asyncio.ensure_future(self.on_run(order))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        elif self.obeys and ident not in self._over:
            self._over.add(ident)
            pods = self._pods(ident, "TERMINATED", exit_code=137, failure="FAILED") if ident in self.specs else ()
            await self._publish(ident, pods=pods, stopped=True, gone=not pods)

    async def see(self, allocation: str, state: str, **pod: Any) -> None:
        """Report all pods of ``allocation`` as being in ``state``."""
        if state == "TERMINATED":
            self._over.add(allocation)
        await self._publish(allocation, pods=self._pods(allocation, state, **pod))

    async def exit(self, allocation: str, code: int = 0) -> None:
        await self.see(allocation, "TERMINATED", exit_code=code, failure="FAILED" if code else "")

    async def lose_node(self, allocation: str) -> None:
        await self.see(allocation, "TERMINATED", failure="NODE_LOST", message="node0 is gone")

    def _pods(self, allocation: str, state: str, **pod: Any) -> tuple[ObservedPod, ...]:
        spec = self.specs[allocation].spec
        assert spec is not None
        nodes = spec.pod_nodes or (self.node,) * spec.num_pods
        slots = spec.pod_slots or (0,) * spec.num_pods
        pods = [
            ObservedPod(
                name=f"{allocation}-{rank}",
                state=state,  # type: ignore[arg-type]
                node=nodes[rank],
                slots=slots[rank],
                **pod,
            )
            for rank in range(spec.num_pods)
        ]
        # Jobs of several sizes are not reported in the order of the ranks.
        return tuple(reversed(pods) if spec.pod_slots else pods)

    async def _publish(self, allocation: str, **fields: Any) -> None:
        before = self.said.get(allocation)
        revision = before.revision + 1 if before is not None else 1
        seen = AllocationObserved(allocation=allocation, pool=self.pool, revision=revision, **fields)
        self.said[allocation] = seen
        await self.publish(seen)

    async def _report_again(self, message: CoreMessage) -> bytes:
        for allocation, heard in msgspec.json.decode(message.data, type=ReportAgainRequest).heard.items():
            seen = self.said.get(allocation)
            if seen is not None and seen.revision != heard:
                self.said[allocation] = msgspec.structs.replace(seen, revision=seen.revision + 1)
                await self.publish(self.said[allocation])
        return msgspec.json.encode(Done())

    async def publish(self, seen: AllocationObserved) -> None:
        await self.bus.publish(subjects.observed(seen.pool, seen.allocation), msgspec.json.encode(seen))

    async def running(self, count: int = 1) -> list[str]:
        """Wait until ``count`` allocations were ever ordered to run; returns them in the order of the orders."""
        await eventually(lambda: len(self.specs) >= count, what=f"{count} allocations ordered to run")
        return list(self.specs)


@asynccontextmanager
async def background(*work: Any) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run coroutines beside the block; what they raise fails the test, unless the block cancels them."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield tasks
    finally:
        failed = [task.exception() for task in tasks if task.done() and not task.cancelled()]
        await end(*tasks)
    assert not [error for error in failed if error is not None], failed


class World:
    def __init__(self, db: Database, bus: Bus, cluster: ClusterConfig) -> None:
        self.db = db
        self.bus = bus
        self.cluster = cluster
        self.api = Api(db, bus)
        self.launcher = FakeLauncher(bus)

    def scheduler(self, settings: SchedulerSettings = USUAL) -> SchedulerController:
        return SchedulerController(
            db=self.db, bus=self.bus, clock=SystemClock(), cluster=self.cluster, settings=settings
        )

    @asynccontextmanager
    async def scheduling(
        self, settings: SchedulerSettings = USUAL, *, schedulers: int = 1, slots: int = 8, nodes: int = 1
    ) -> AsyncIterator[World]:
        """The outbox relayed, a launcher with 8 slots, and schedulers at work."""
        await self.launcher.offer(slots, nodes=nodes)
        loops = [self.scheduler(settings).run() for _ in range(schedulers)]
        async with background(relay_outbox(self.db, self.bus), self.launcher.run(), *loops):
            yield self
