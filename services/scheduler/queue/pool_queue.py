"""The queue of one pool: plan when something has changed, give slots to whom the plan starts, note why others wait.

An advisory lock of the pool makes plans follow one another, whoever makes them; a plan is made from what is committed
and carried out in one transaction, so no slot is given twice.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

import structlog
from msgspec import Struct

from libs.clock import Clock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.engine import Connection, Database
from libs.db.prepared.statements import PreparedStatement
from libs.db.transactions import in_transaction
from libs.events.capacity import PoolCapacity
from libs.states.allocation import CLUSTER_PREEMPTS, MOVED, AllocationState
from libs.telemetry import counter, gauge, histogram
from libs.tracing import TraceContext, record
from services.scheduler.allocations.ended import clear_ended
from services.scheduler.allocations.termination import is_over, terminate
from services.scheduler.orders.orders import issue
from services.scheduler.orders.task_specs import TaskMaterial
from services.scheduler.plan.decisions import EndGrowth, Grow, Plan, Start, Wait
from services.scheduler.plan.forecast.run_times import NOTHING_RAN, PastRuns
from services.scheduler.plan.growth.dividing import needs_of_pods
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.queue.growth_rows import write_growth
from services.scheduler.queue.guests.wakes import Wakes
from services.scheduler.queue.moving.moves import kept_from, names_of, write_moves
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.pool_rows import LoadedPool, load_pool
from services.scheduler.queue.ports import choose_with_ports
from services.scheduler.queue.queue_states import nominated_after, states_after, write_states
from services.scheduler.queue.restricting.shared_nodes import lock_shared_nodes
from services.scheduler.queue.wait_notes import note_waits
from services.scheduler.settings import QueueSettings
from services.scheduler.transactions.allocation_messages import changed, note
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, Locked, lock_where
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

_POOL_LOCKS: Final = 0x5E50
"""First half of the advisory locks of pools; the second is a hash of the name."""
_LOCK_POOL: Final = PreparedStatement("SELECT pg_advisory_xact_lock(:space::int, hashtext(:pool::text))")
_STARTS_AT_ONCE: Final = 250
"""Allocations that one transaction starts; the next plan follows at once. Fewer would be on their way earlier, and each
plan looks at the whole queue."""
_LARGEST_SHARE: Final = 0.3
"""Part of the processor's time that planning may take: behind a long plan comes a long pause, up to ``resync_s``."""
_LARGEST_PART: Final = 0.5
"""Of all time, most of which small pools wait for their database."""

PLAN_SECONDS: Final = histogram("resolute_scheduler_plan_seconds", "Time to plan a pool and carry it out", "pool")
QUEUED: Final = gauge(
    "resolute_scheduler_queued", "Allocations that wait in the queue of a pool, by the reason", "pool", "reason"
)
STARTED: Final = counter("resolute_scheduler_started_total", "Allocations that got their slots", "pool")

PREEMPTED: Final = counter(
    "resolute_scheduler_preempted_total", "Allocations that were asked to leave for others", "pool"
)

MOVED_AWAY: Final = counter(
    "resolute_scheduler_moved_total", "Trials that were asked to start again on other nodes, to make room", "pool"
)


GROWTHS: Final = counter(
    "resolute_scheduler_growths_total",
    "Times that the cluster was asked for nodes, and what came of it",
    "pool",
    "event",
)


class PlanOutcome(Struct, frozen=True, kw_only=True):
    started: int
    preempted: int
    moved: int
    """Asked to leave, to start again on other nodes."""
    impossible: tuple[AllocationRow, ...]
    """Allocations whose turn it was, and that turned out to make no task."""
    waiting: Mapping[WaitReason, int]
    more: bool
    """Whether another plan at once could start something."""
    was_empty: bool
    others: Set[str] = frozenset()
    """Pools that have something to plan because of this plan."""


def pause_s(took_s: float, *, used_s: float, was_empty: bool, goes_on: bool, settings: QueueSettings) -> float:
    """How long to let a pool be after a plan that took ``took_s``, whatever happens meanwhile.

    used_s   Time of the processor, that of whatever else was done meanwhile included.
    goes_on  The plan started as many as one transaction may, and the next one starts more: it was worth its time.

    Never longer than ``resync_s``: a plan that stood still with the database says nothing about the next one.
    """
    if goes_on:
        return 0.0
    # Nobody waited: that was a look rather than a plan, and whoever comes next need not wait for its sake.
    interval_s = 0.0 if was_empty else settings.plan_interval_s
    by_share = max(used_s * (1 / _LARGEST_SHARE - 1), took_s * (1 / _LARGEST_PART - 1))
    return min(max(interval_s - took_s, by_share), settings.resync_s)


class PoolQueue:
    """``ended`` is called for allocations that turn out to be impossible when they are to start, ``wake`` with names of
    other pools that have something to plan."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        cluster: ClusterConfig,
        pool: PoolConfig,
        capacity: Callable[[str], PoolCapacity | None],
        ended: Callable[[AllocationRow], None],
        settings: QueueSettings,
        past_runs: Callable[[], PastRuns] = lambda: NOTHING_RAN,
        capacities: Callable[[], Sequence[PoolCapacity]] = tuple,
        wake: Callable[[str], None] = lambda _pool: None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._cluster = cluster
        self._pool = pool
        self._capacity = capacity
        self._ended = ended
        self._settings = settings
        self._past_runs = past_runs
        self._capacities = capacities
        self._wake = wake
        self._wakes = Wakes(pool.pool_name)
        self._notified = asyncio.Event()
        self._memory = PoolMemory(cluster=cluster, pool=pool)
        self._limits_looked_at = -math.inf
        self._waits_for_shared_limits = False

    @property
    def waits_for_shared_limits(self) -> bool:
        """Whether what ends in another pool may let something start here."""
        return self._waits_for_shared_limits

    def notify(self) -> None:
        """Something about the pool may have changed."""
        self._notified.set()

    async def run(self) -> None:
        """Plan until cancelled: after notifications, and now and then without."""
        loop = f"queue of {self._pool.pool_name}"
        try:
            await run_periodically(loop, self._plan_and_pause, every_s=self._settings.resync_s, wake=self._notified)
        finally:
            self._show_waiting({})  # whoever plans from now on tells

    async def _plan_and_pause(self) -> None:
        began, used = time.monotonic(), time.thread_time()
        outcome = await self.plan_once()
        took, used = time.monotonic() - began, time.thread_time() - used
        if outcome.more:
            self._notified.set()
        goes_on = outcome.more and outcome.started > 0
        pause = pause_s(took, used_s=used, was_empty=outcome.was_empty, goes_on=goes_on, settings=self._settings)
        await asyncio.sleep(pause)

    async def plan_once(self) -> PlanOutcome:
        """Make one plan and carry it out."""
        with PLAN_SECONDS.labels(self._pool.pool_name).time():
            outcome = await in_transaction(self._db, self._plan)
        for row in outcome.impossible:
            self._ended(row)
        for pool in sorted(outcome.others):
            self._wake(pool)
        STARTED.labels(self._pool.pool_name).inc(outcome.started)
        PREEMPTED.labels(self._pool.pool_name).inc(outcome.preempted)
        MOVED_AWAY.labels(self._pool.pool_name).inc(outcome.moved)
        self._waits_for_shared_limits = not outcome.waiting.keys().isdisjoint(
            {WaitReason.SLOT_LIMIT, WaitReason.HOUR_LIMIT}
        )
        self._show_waiting(outcome.waiting)
        return outcome

    def _show_waiting(self, waiting: Mapping[WaitReason, int]) -> None:
        for reason in WaitReason:
            QUEUED.labels(self._pool.pool_name, reason.code).set(waiting.get(reason, 0))

    async def _plan(self, connection: Connection) -> PlanOutcome:
        name = self._pool.pool_name
        capacity = self._capacity(name)
        shared = self._memory.shared_nodes(capacity, self._capacities())
        if shared:
            await lock_shared_nodes(connection)
        await _LOCK_POOL.rows(connection, space=_POOL_LOCKS, pool=name)
        loaded = await load_pool(
            connection,
            self._pool,
            cluster=self._cluster,
            capacity=capacity,
            now=self._clock.now(),
            limits_may_be_lowered=self._is_time_for_limits(),
            past=self._past_runs(),
            memory=self._memory,
            shared_nodes=shared,
        )
        made = plan(loaded.snapshot, self._memory.eligibility, self._memory.searched)
        starts = list(made.starts)
        chosen, ports, portless = await choose_with_ports(
            connection, starts, loaded.trials, most=_STARTS_AT_ONCE, reserved=self._cluster.reserved_ports
        )
        rows, left = await self._carry_out(connection, chosen, ports, made, loaded)
        await write_moves(connection, name, made.moved, left, before=loaded.moves, made=made, now=loaded.snapshot.now)
        # Guests are told why they wait by their own pool, unless others leave for them here.
        nominated = nominated_after(made, loaded.snapshot.pending)
        undivided = (Wait(allocation, WaitReason.EQUAL_PODS) for allocation in sorted(loaded.undivided))
        waits = [
            wait
            for wait in (*made.waits, *portless, *undivided)
            if wait.allocation not in loaded.guests or wait.allocation in nominated
        ]
        changed_waits = [wait for wait in waits if loaded.wait_reasons[wait.allocation] != wait.sentence]
        await note_waits(connection, changed_waits, now=loaded.snapshot.now)
        if loaded.snapshot.nodes is not None:
            pending = loaded.snapshot.pending
            await write_states(connection, name, states_after(made, pending), pending)
        grown = await self._write_growth(connection, made, loaded, rows)
        impossible = tuple(row for row in rows if is_over(row))
        return PlanOutcome(
            started=len(rows) - len(impossible),
            preempted=len(made.preempted),
            moved=len(made.moved),
            impossible=impossible,
            waiting=Counter(wait.reason for wait in waits),
            more=bool(impossible) or len(starts) > len(chosen) + len(portless) or isinstance(grown, EndGrowth),
            was_empty=not made.decisions,
            others=await self._wakes.after(
                connection,
                loaded.rows,
                started={row.allocation_id for row in rows},
                nominated=nominated,
                now=loaded.snapshot.now,
            ),
        )

    async def _write_growth(
        self, connection: Connection, made: Plan, loaded: LoadedPool, started: Sequence[AllocationRow]
    ) -> Grow | EndGrowth | None:
        """Ask for the nodes that the plan wants, or for none any more; returns what was done."""
        growth, config = made.growth, self._pool.growth
        if growth is None or config is None:
            return None
        was_to_start = any(start.allocation == growth.allocation for start in made.starts)
        if was_to_start and not any(row.allocation_id == growth.allocation for row in started):
            return None  # it starts with another plan, and its nodes are kept for it until then
        request = next((one for one in loaded.snapshot.pending if one.allocation == growth.allocation), None)
        needs = needs_of_pods(request, growth) if request is not None and isinstance(growth, Grow) else None
        await write_growth(connection, self._pool.pool_name, config, growth, needs=needs, now=loaded.snapshot.now)
        GROWTHS.labels(self._pool.pool_name, _outcome(growth, was_to_start=was_to_start)).inc()
        return growth

    def _is_time_for_limits(self) -> bool:
        """Nobody notifies of a lowered limit, so that is looked for now and then."""
        now = time.monotonic()
        if now - self._limits_looked_at < self._settings.resync_s:
            return False
        self._limits_looked_at = now
        return True

    async def _carry_out(
        self,
        connection: Connection,
        starts: Sequence[Start],
        ports: Mapping[str, dict[str, int]],
        made: Plan,
        loaded: LoadedPool,
    ) -> tuple[list[AllocationRow], list[AllocationRow]]:
        """Give the slots and write the orders, and ask to leave who has to; who has ended meanwhile is passed over.
        Returns those that have slots now, and those that were asked."""
        heads = await names_of(connection, {one.makes_room_for for one in made.moved})
        leaving = {one.allocation: CLUSTER_PREEMPTS for one in made.preempted}
        leaving |= {one.allocation: f"{MOVED}{heads[one.makes_room_for]}" for one in made.moved}
        if not (starts or leaving):
            return [], []
        locked: Locked[AllocationRow] = Locked()
        chosen = {start.allocation: start for start in starts}
        still = "released_at IS NULL AND (state = 'PENDING') = (allocation_id = ANY(:chosen))"
        wanted = f"allocation_id = ANY(:wanted) AND {still}"
        named = {"wanted": [*chosen, *leaving], "chosen": list(chosen)}
        found = await lock_where(connection, AllocationRow, wanted, locked, **named)
        # In the order of the plan, so that the first in the queue is the first that its launcher hears of.
        by_id = {row.allocation_id: row for row in found}
        rows = [by_id[start.allocation] for start in starts if start.allocation in by_id]
        now = self._clock.now()
        out = OutboxBuffer()
        for row in rows:
            if (guest := loaded.guests.get(row.allocation_id)) is not None:
                row.pool, row.num_pods, row.time_limit_s = self._pool.pool_name, guest.num_pods, guest.time_limit_s
                note(row, f"Starts in resource pool {row.pool} instead of {guest.pool}", now=now, out=out)
        material = await TaskMaterial.load(
            connection, rows, cluster=self._cluster, disabled=loaded.disabled_nodes, sees_nodes=loaded.sees_nodes
        )
        for row in rows:
            row.traceparent = _traced(row, material.trace(row))
            row.state = AllocationState.ASSIGNED
            row.assigned_at = now
            row.wait_reason = ""
            row.priority = material.priority(row)
            row.namespace = loaded.namespaces.get(row.allocation_id, "")
            placements = chosen[row.allocation_id].placements
            row.num_pods = len(placements)
            row.places = [{"node": place.node, "slots": place.slots} for place in placements]
            row.ports = ports.get(row.allocation_id, {})
            if self._cluster.resource_manager.binds_by_itself:
                not_there = kept_from(loaded.moves, row.allocation_id, loaded.snapshot.pending)
                row.blocked_nodes = [*row.blocked_nodes, *not_there]
            out.announce(changed(row, "state"))
        await issue(connection, rows, cluster=self._cluster, now=now, out=out, material=material)
        asked = [row for row in found if row.allocation_id in leaving]
        for row in asked:
            terminate(row, reason=leaving[row.allocation_id], now=now, out=out)
        await locked.write(connection)
        await clear_ended(connection, out.events, now=now)
        await out.flush(connection)
        return rows, asked


def _outcome(growth: Grow | EndGrowth, *, was_to_start: bool) -> str:
    if isinstance(growth, Grow):
        return "asked"
    if growth.gave_up:
        return "gave_up"
    return "started" if was_to_start else "withdrawn"


def _traced(row: AllocationRow, parent: TraceContext | None) -> str | None:
    """The trace context that the task starts in: the end of its wait in the queue."""
    if parent is None:
        return None
    attributes: dict[str, str | int] = {
        "resolute.allocation": row.allocation_id,
        "resolute.pool": row.pool,
        "resolute.slots": row.slots,
        "resolute.waited_for": row.wait_reason,
    }
    queued = record("allocation.queued", parent=parent, began_at=row.requested_at, attributes=attributes)
    return (queued or parent).traceparent
