"""Reconciles allocations: applies what launchers see of them, and ends those that have to end.

Each change takes the lock of the allocation's row and commits with what there is to say about it. How a trial or
another task reacts is decided in ``experiments/`` and ``tasks/``; that an allocation waits for the reaction shows in
its column ``exit_processed``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec
import structlog
from sqlalchemy import select, text

from libs.bus import Message
from libs.clock import Clock
from libs.db.engine import Connection, Database
from libs.db.tables.tasks import allocations
from libs.db.transactions import in_transaction
from libs.events import subjects
from libs.events.observations import AllocationObserved
from services.scheduler.allocations.ended import clear_ended
from services.scheduler.allocations.observation import observe
from services.scheduler.allocations.pod_nodes import is_on
from services.scheduler.allocations.pod_sizes import held_pods
from services.scheduler.allocations.termination import NODE_DISABLED, follow_up, is_leaving, is_over, kill, terminate
from services.scheduler.allocations.time_limits import is_up, reached
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, Locked, lock_one

log = structlog.get_logger()


_DISABLED: Final = text("SELECT node FROM node_overrides WHERE NOT draining")
# Pods that have ended, and places that were not taken, are found as well; the row itself decides, under its lock.
_ON_DISABLED: Final = text("""
    SELECT a.allocation_id FROM allocations a
    WHERE a.released_at IS NULL AND a.assigned_at IS NOT NULL AND a.killed_at IS NULL AND EXISTS (
        SELECT 1 FROM node_overrides o
        WHERE NOT o.draining AND jsonb_build_array(jsonb_build_object('node', o.node)) <@ (a.pods || a.places)
    )
    ORDER BY a.allocation_id
""")


class AllocationReconciler:
    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        ended: Callable[[AllocationRow], None],
        plan_binds: bool = True,
        observing: Callable[[AllocationObserved], None] = lambda _seen: None,
        held_changed: Callable[[str], None] = lambda _pool: None,
    ) -> None:
        """
        ended         called after the commit that ended an allocation, to save a way over the bus
        plan_binds    pods go where the planner saw room for them
        observing     called with each observation before it is applied
        held_changed  called with the pool of an allocation that was seen to hold something else than plans thought: a
                      pod has another node, or has ended before the others
        """
        self._db = db
        self._clock = clock
        self._ended = ended
        self._plan_binds = plan_binds
        self._observing = observing
        self._held_changed = held_changed

    async def on_observation(self, message: Message) -> None:
        """Handler of the durable consumer of observations."""
        try:
            seen = msgspec.json.decode(message.data, type=AllocationObserved)
        except msgspec.DecodeError as error:
            # It would be as unreadable the next time.
            log.error("observation.unreadable", subject=message.subject, error=str(error))
            return
        if message.subject != subjects.observed(seen.pool, seen.allocation):
            # The subject is what a launcher is allowed to say; the content is only what it says.
            log.error("observation.not_its_own", subject=message.subject, allocation=seen.allocation, pool=seen.pool)
            return
        await self.observe(seen)

    async def observe(self, seen: AllocationObserved) -> None:
        """Apply an observation; old ones, and those of allocations nobody knows, change nothing."""
        self._observing(seen)
        is_changed = False

        def apply(row: AllocationRow, out: OutboxBuffer) -> None:
            nonlocal is_changed
            before = _held(row)
            observe(row, seen, now=self._clock.now(), out=out)
            is_changed = _held(row) != before

        await self._change(seen.allocation, apply, pool=seen.pool)
        if is_changed:
            self._held_changed(seen.pool)

    async def follow_up_all(self) -> list[str]:
        """Have leave or kill what the api was told should, and kill what was asked to and has not; returns those."""
        columns = allocations.c
        is_requested = columns.kill_reason.is_not(None) | (
            columns.preempt_reason.is_not(None) & columns.preempted_at.is_(None)
        )
        query = select(columns.allocation_id).where(
            columns.released_at.is_(None),
            columns.killed_at.is_(None),
            is_requested | (columns.preempt_deadline <= self._clock.now()),
        )
        async with self._db.read() as connection:
            due = list((await connection.execute(query)).scalars())
        for allocation in due:
            await self.follow_up(allocation)
        return due

    async def follow_up(self, allocation: str) -> None:
        """Do what is due with one allocation, if anything is."""
        await self._change(allocation, lambda row, out: follow_up(row, now=self._clock.now(), out=out))

    async def clear_disabled_nodes(self) -> list[str]:
        """Kill whatever runs on a node that an administrator has disabled without drain; returns the allocations."""
        async with self._db.read() as connection:
            disabled = frozenset((await connection.execute(_DISABLED)).scalars())
            candidates = list((await connection.execute(_ON_DISABLED)).scalars()) if disabled else []

        def kill_if_there(row: AllocationRow, out: OutboxBuffer) -> None:
            if row.assigned_at is not None and is_on(row, disabled, plan_binds=self._plan_binds):
                kill(row, reason=NODE_DISABLED, now=self._clock.now(), out=out)

        for allocation in candidates:
            await self._change(allocation, kill_if_there)
        return candidates

    async def end_in_time(self, allocation: str) -> bool:
        """Have it leave if its time limit is reached and nobody has asked it to leave yet; whether that was so."""
        ended: list[str] = []

        def end_if_up(row: AllocationRow, out: OutboxBuffer) -> None:
            now = self._clock.now()
            if is_up(row, now) and not is_leaving(row):
                terminate(row, reason=reached(row), now=now, out=out)
                ended.append(row.allocation_id)

        await self._change(allocation, end_if_up)
        return bool(ended)

    async def have_leave(self, allocation: str, why: Callable[[AllocationRow], str | None]) -> None:
        """Have it leave for the reason that ``why`` gives, if it gives one."""

        def leave(row: AllocationRow, out: OutboxBuffer) -> None:
            reason = None if row.assigned_at is None else why(row)
            if reason is not None:
                terminate(row, reason=reason, now=self._clock.now(), out=out)

        await self._change(allocation, leave)

    async def kill(self, allocation: str, *, reason: str) -> None:
        await self._change(allocation, lambda row, out: kill(row, reason=reason, now=self._clock.now(), out=out))

    async def _change(
        self, allocation: str, change: Callable[[AllocationRow, OutboxBuffer], None], *, pool: str | None = None
    ) -> None:
        async def work(connection: Connection) -> AllocationRow | None:
            locked: Locked[AllocationRow] = Locked()
            row = await lock_one(connection, AllocationRow, allocation, locked)
            if row is None or pool not in (None, row.pool) or is_over(row):
                return None
            out = OutboxBuffer()
            change(row, out)
            await locked.write(connection)
            await clear_ended(connection, out.events, now=self._clock.now())
            await out.flush(connection)
            return row

        row = await in_transaction(self._db, work)
        if row is not None and is_over(row):
            self._ended(row)


def _held(row: AllocationRow) -> Counter[tuple[str, int]]:
    """Nodes and slots of its pods, as plans see them."""
    columns = {"slots": row.slots, "num_pods": row.num_pods, "pods": row.pods, "places": row.places}
    return Counter(held_pods(columns))
