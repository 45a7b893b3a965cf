"""Reports to the scheduler, over the bus: observations and capacity, the newest of each until the bus has it.

What is seen while the bus is away replaces what was seen before, so nothing piles up and nothing that still matters is
lost. Revisions grow by at least one, and begin at the present nanosecond, so that they also grow over restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, KeysView
from functools import partial
from typing import Final

import msgspec
import structlog

from libs.bus import Bus, event_headers
from libs.clock import Clock
from libs.errors import Unavailable
from libs.events import subjects
from libs.events.capacity import PoolCapacity
from libs.events.cluster_admin import Done
from libs.events.observation_requests import ReportAgainRequest
from libs.events.observations import AllocationObserved
from libs.events.orders import Order
from libs.telemetry import counter
from libs.waiting import wait_until_set
from services.launcher.capacity_message import CapacityMessage, Extent, capacity_message
from services.launcher.capacity_metrics import show_capacity
from services.launcher.settings import LoopSettings

log = structlog.get_logger()

PUBLISHED: Final = counter("resolute_launcher_observations_total", "Observations that the bus has acknowledged")
TOO_LARGE: Final = counter(
    "resolute_launcher_capacity_too_large_total",
    "Reports of the capacity that are larger than the bus takes, by what of them was sent: without_shapes, nothing",
    "sent",
)


class Reports:
    def __init__(
        self,
        *,
        pool: str,
        bus: Bus,
        capacity: Callable[[], Awaitable[PoolCapacity]],
        clock: Clock,
        settings: LoopSettings,
    ) -> None:
        """``capacity`` is asked whenever it is to be reported."""
        self._pool = pool
        self._bus = bus
        self._capacity = capacity
        self._clock = clock
        self._settings = settings
        self._said: dict[str, AllocationObserved] = {}
        """The last observation of each allocation, with its revision, whether acknowledged or not."""
        self._to_publish: dict[str, None] = {}
        self._capacity_said: PoolCapacity | None = None
        """The last that was reported, or was too large for that."""
        self._capacity_extent: Extent = "whole"
        """What of it the bus took."""
        self._last_revision = 0
        self._observations_due = asyncio.Event()
        self._capacity_due = asyncio.Event()

    def observed(self, observation: AllocationObserved) -> None:
        """Report an observation, of which the revision does not count, if it says anything new."""
        before = self._said.get(observation.allocation)
        if before is not None and msgspec.structs.replace(before, revision=0) == observation:
            return
        self._said[observation.allocation] = msgspec.structs.replace(observation, revision=self._next_revision())
        self._to_publish[observation.allocation] = None
        self._observations_due.set()

    def gone(self, order: Order) -> None:
        """Report that nothing exists of an allocation that was ordered to stop."""
        if order.allocation in self._said and self._said[order.allocation].gone:
            return  # how it ended has been told, in more detail
        num_pods = order.spec.num_pods if order.spec is not None else 1
        self.observed(
            AllocationObserved(
                allocation=order.allocation, pool=self._pool, revision=0, num_pods=num_pods, gone=True, stopped=True
            )
        )

    def repeat_all(self) -> None:
        """Report the last observation of every allocation once more, and the capacity."""
        for said in tuple(self._said.values()):
            self._repeat(said)
        self._capacity_said = None
        self._observations_due.set()
        self._capacity_due.set()

    async def report_again(self, asked: ReportAgainRequest) -> Done:
        """Report once more what the asker has not heard as it was said."""
        # A clock that went back would otherwise make everything that is said now older than what was heard.
        self._last_revision = max(self._last_revision, *asked.heard.values(), 0)
        for allocation, heard in asked.heard.items():
            said = self._said.get(allocation)
            if said is not None and said.revision != heard:
                log.info("observation.reported_again", allocation=allocation, revision=said.revision, heard=heard)
                self._repeat(said)
        self._observations_due.set()
        return Done()

    @property
    def told(self) -> KeysView[str]:
        """Allocations of which something was said that is not forgotten."""
        return self._said.keys()

    def forget(self, allocations: Iterable[str]) -> None:
        """Forget what was said of allocations, except where the bus does not have it yet."""
        for allocation in allocations:
            if allocation not in self._to_publish:
                self._said.pop(allocation, None)

    def capacity_changed(self) -> None:
        """Report the capacity, if it is another."""
        self._capacity_due.set()

    async def publish_observations(self) -> None:
        """Run until cancelled."""
        while True:
            await self._observations_due.wait()
            self._observations_due.clear()
            while self._to_publish:
                allocation = next(iter(self._to_publish))
                observation = self._said[allocation]
                try:
                    await self._publish(observation)
                except Unavailable as error:
                    log.warning("observation.not_published", allocation=allocation, error=str(error))
                    await asyncio.sleep(self._settings.retry_s)
                    continue
                if self._said[allocation].revision == observation.revision:
                    del self._to_publish[allocation]

    async def publish_capacity(self) -> None:
        """Run until cancelled."""
        capacity = await self._look_at_capacity()
        while True:
            try:
                await self._put(capacity)
            except Unavailable as error:
                log.warning("capacity.not_published", error=str(error))
                await asyncio.sleep(self._settings.retry_s)
                capacity = await self._look_at_capacity()
                continue
            capacity = await self._next_capacity()

    async def _look_at_capacity(self) -> PoolCapacity:
        self._capacity_due.clear()
        capacity = await self._capacity()
        # Nothing can be observed between the look and the number: the look ends without giving way to others.
        return msgspec.structs.replace(capacity, revision=self._next_revision())

    async def _put(self, capacity: PoolCapacity) -> None:
        """Report a capacity, as much of it as the bus takes. Raises Unavailable."""
        bucket, key = self._bus.bucket(subjects.CAPACITY_BUCKET), subjects.capacity_key(self._pool)
        message = capacity_message(capacity, fits=partial(bucket.fits, key))
        self._note_extent(message)
        if message.payload is not None:
            await bucket.put(key, message.payload)
            show_capacity(capacity)
        # What is too large now is so in a second; a change, or the next report that is due, may be smaller.
        self._capacity_said = capacity

    def _note_extent(self, message: CapacityMessage) -> None:
        if message.extent != "whole":
            TOO_LARGE.labels(message.extent).inc()
        if message.extent == self._capacity_extent:
            return
        self._capacity_extent = message.extent
        if message.extent == "whole":
            log.info("capacity.whole_again", size=message.size)
        else:
            log.error("capacity.too_large", size=message.size, sent=message.extent)

    async def _next_capacity(self) -> PoolCapacity:
        """The next that is to be reported: another one, or the same when nothing was reported for so long that readers
        might wonder."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.capacity_interval_s
        while await wait_until_set(self._capacity_due, timeout_s=deadline - loop.time()):
            capacity = await self._look_at_capacity()
            said = self._capacity_said
            if said is None or not _say_the_same(capacity, said):
                return capacity
        return await self._look_at_capacity()

    def _repeat(self, said: AllocationObserved) -> None:
        again = msgspec.structs.replace(said, revision=self._next_revision())
        if said.allocation not in self._to_publish:
            # Which nodes were closed was true of the moment; by now a capacity may have said that they are open again.
            again = msgspec.structs.replace(again, closed_nodes=())
        self._said[said.allocation] = again
        self._to_publish[said.allocation] = None

    async def _publish(self, observation: AllocationObserved) -> None:
        headers = event_headers(
            id=f"{observation.allocation}/{observation.revision}",
            type="allocation.observed",
            source=subjects.observation_source(self._pool),
            subject=observation.allocation,
            time=self._clock.now(),
        )
        subject = subjects.observed(self._pool, observation.allocation)
        await self._bus.publish(subject, msgspec.json.encode(observation), headers=headers)
        PUBLISHED.inc()
        log.info(
            "observation.published",
            allocation=observation.allocation,
            states=[pod.state for pod in observation.pods],
            gone=observation.gone,
        )

    def _next_revision(self) -> int:
        now_ns = int(self._clock.now().timestamp() * 1_000_000) * 1000
        self._last_revision = max(self._last_revision + 1, now_ns)
        return self._last_revision


def _say_the_same(one: PoolCapacity, other: PoolCapacity) -> bool:
    return msgspec.structs.replace(one, seen_at=other.seen_at, revision=other.revision) == other
