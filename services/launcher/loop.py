"""Watches the orders of a pool, has the backend make them so, and reports what it sees.

Three loops share one picture and never wait for one another: orders come in, steps are taken (one at a time for each
allocation), observations go out. Each can be repeated at any point, so a launcher that was killed just begins again.
Steps follow from the present state alone; notifications only spare a look at thousands of unchanged allocations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, nullcontext
from typing import Final

import msgspec
import structlog

from libs.bus import Bus, KvChange, SnapshotEnd
from libs.clock import Clock
from libs.events.orders import Order
from libs.events.subjects import ORDERS_BUCKET, order_key, orders_of
from libs.telemetry import counter
from libs.tracing import parse_traceparent, span
from libs.waiting import wait_until_set
from services.launcher.backends.protocol import Backend
from services.launcher.reconcile import Existence, RemoveStep, ReportGoneStep, StartStep, Step, StopStep, steps
from services.launcher.reports import Reports
from services.launcher.settings import LoopSettings

log = structlog.get_logger()

LOOK_AT_ALL_S: Final = 60.0
"""Longest time between two looks at all allocations, notified or not."""

STEPS_TAKEN: Final = counter("resolute_launcher_steps_total", "Steps taken to make orders true", "step", "outcome")


class OrderLoop:
    def __init__(
        self, *, pool: str, bus: Bus, backend: Backend, reports: Reports, clock: Clock, settings: LoopSettings
    ) -> None:
        self._pool = pool
        self._bus = bus
        self._backend = backend
        self._reports = reports
        self._clock = clock
        self._settings = settings
        self._orders: dict[str, Order] = {}
        """By key of the bucket, as are the others."""
        self._unreadable: set[str] = set()
        self._missing: dict[str, float] = {}
        """Keys without an order that nobody withdrew in our sight, and until when they are left alone."""
        self._in_step: set[str] = set()
        self._look_after_step: set[str] = set()
        self._retry_at: dict[str, float] = {}
        self._touched: set[str] = set()
        """Allocations of which something may have changed since they were looked at."""
        self._look_at_all_at = 0.0
        self._look = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled. Steps under way are given up then; whoever comes next finds out how far they got."""
        async with asyncio.TaskGroup() as tasks:
            snapshot = asyncio.Event()
            tasks.create_task(self._watch_orders(snapshot), name="orders")
            tasks.create_task(self._watch_backend(), name="changes")
            await snapshot.wait()
            tasks.create_task(self._take_steps(tasks), name="steps")

    async def _watch_orders(self, snapshot: asyncio.Event) -> None:
        async with aclosing(self._bus.bucket(ORDERS_BUCKET).watch(orders_of(self._pool))) as changes:
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    await self._compare(change.keys)
                    if snapshot.is_set():
                        # The link was in doubt, and what was told before may be lost with the server's disk.
                        self._reports.repeat_all()
                    snapshot.set()
                    self._touch_all()
                else:
                    self._take_in(change)

    def _take_in(self, change: KvChange) -> None:
        key = change.key
        if change.value is None:
            withdrawn = self._orders.pop(key, None)
            if withdrawn is not None or key in self._unreadable:
                log.info("order.withdrawn", key=key)
            self._unreadable.discard(key)
            self._missing.pop(key, None)
            if withdrawn is not None:
                self._touch(withdrawn.allocation)
            else:
                self._touch_all()  # something may be there without an order that was ever read
            return
        try:
            order = msgspec.json.decode(change.value, type=Order)
        except msgspec.DecodeError as error:
            # Whatever it meant, nothing is started or ended because of it.
            log.error("order.unreadable", key=key, error=str(error))
            self._unreadable.add(key)
            return
        if order_key(self._pool, order.allocation) != key or order.pool != self._pool:
            log.error("order.misplaced", key=key, allocation=order.allocation)
            self._unreadable.add(key)
            return
        self._unreadable.discard(key)
        self._missing.pop(key, None)
        self._orders[key] = order
        self._touch(order.allocation)
        log.info("order.seen", allocation=order.allocation, desired=order.desired, reason=order.reason)

    async def _compare(self, keys: frozenset[str]) -> None:
        """After a snapshot: what is not in it has no order, but perhaps only for the moment."""
        self._unreadable &= keys
        for key in self._orders.keys() - keys:
            del self._orders[key]
        until = self._now() + self._settings.absence_grace_s
        existing = {order_key(self._pool, allocation) for allocation in await self._backend.existing()}
        for key in existing - keys:
            self._missing.setdefault(key, until)

    async def _watch_backend(self) -> None:
        """Report what changed. The backend names the allocation only: until its turn comes there may be more to see."""
        async with aclosing(self._backend.changes()) as changes:
            async for allocation in changes:
                observation = await self._backend.observe(allocation)
                if observation is not None:
                    self._reports.observed(observation)
                self._reports.capacity_changed()
                self._touch(allocation)

    async def _take_steps(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._look.clear()
            everything = await self._backend.existing()
            now = self._now()
            due = self._due(everything, now)
            orders = {each: order for each in due if (order := self._orders.get(order_key(self._pool, each)))}
            existing = {each: everything[each] for each in due if each in everything}
            untouchable = {each for each in existing if self._is_in_doubt(each, now)}
            self._reports.forget(due - orders.keys() - existing.keys())
            for step in steps(orders, existing, untouchable):
                if step.allocation in self._in_step:
                    self._look_after_step.add(step.allocation)
                elif self._retry_at.get(step.allocation, now) <= now:
                    self._in_step.add(step.allocation)
                    tasks.create_task(self._take(step), name=f"step {step.allocation}")
            await self._wait(now)

    def _due(self, existing: Mapping[str, Existence], now: float) -> set[str]:
        """Allocations to look at: those that were touched or put off until now, and now and then all."""
        due, self._touched = self._touched, set()
        due |= {allocation for allocation, at in self._retry_at.items() if at <= now}
        self._retry_at = {allocation: at for allocation, at in self._retry_at.items() if at > now}
        is_any_given_up = any(until <= now for until in self._missing.values())
        self._missing = {key: until for key, until in self._missing.items() if until > now}
        if is_any_given_up or now >= self._look_at_all_at:
            self._look_at_all_at = now + LOOK_AT_ALL_S
            due |= {order.allocation for order in self._orders.values()} | existing.keys() | self._reports.told
        return due

    def _is_in_doubt(self, allocation: str, now: float) -> bool:
        """Whether its order is missing, but perhaps not withdrawn."""
        if not self._unreadable and not self._missing:
            return False
        key = order_key(self._pool, allocation)
        return key in self._unreadable or self._missing.get(key, now) > now

    async def _wait(self, now: float) -> None:
        """Until something changed, or something that was put off is due."""
        due = [at for at in (*self._retry_at.values(), *self._missing.values(), self._look_at_all_at) if at > now]
        timeout = max(0.0, min(due) - self._now()) if due else 0.0
        await wait_until_set(self._look, timeout_s=timeout)

    def _touch(self, allocation: str) -> None:
        self._touched.add(allocation)
        self._look.set()

    def _touch_all(self) -> None:
        self._look_at_all_at = 0.0
        self._look.set()

    async def _take(self, step: Step) -> None:
        kind = type(step).__name__.removesuffix("Step")
        try:
            await self._do(step)
        except Exception:
            log.exception("step.failed", step=kind, allocation=step.allocation)
            STEPS_TAKEN.labels(kind, "failed").inc()
            self._retry_at[step.allocation] = self._now() + self._settings.retry_s
            self._look_after_step.add(step.allocation)
        else:
            STEPS_TAKEN.labels(kind, "done").inc()
            self._retry_at.pop(step.allocation, None)
        self._in_step.discard(step.allocation)
        # A stop that succeeded remains the step to take until the end is seen; looking at once would repeat it.
        if step.allocation in self._look_after_step or isinstance(step, RemoveStep):
            self._look_after_step.discard(step.allocation)
            self._touch(step.allocation)

    async def _do(self, step: Step) -> None:
        match step:
            case StartStep(order=order):
                await self._start(order)
            case StopStep(allocation=allocation, grace_s=grace_s, ordered=ordered):
                await self._backend.stop(allocation, grace_s=grace_s, ordered=ordered)
            case RemoveStep(allocation=allocation):
                log.info("allocation.remove", allocation=allocation)
                await self._backend.remove(allocation)
            case ReportGoneStep(order=order):
                if not await self._backend.seek(order):
                    self._reports.gone(order)

    async def _start(self, order: Order) -> None:
        parent = parse_traceparent(order.spec.traceparent) if order.spec is not None else None
        # Without a parent there is nothing to follow: whatever began it was not traced.
        begun = span(
            "allocation.start", parent=parent, resolute__allocation=order.allocation, resolute__pool=self._pool
        )
        with begun if parent is not None else nullcontext():
            log.info("allocation.start", allocation=order.allocation)
            await self._backend.start(order)

    def _now(self) -> float:
        return self._clock.now().timestamp()
