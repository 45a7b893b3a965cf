"""Writes orders: when an allocation gets its slots, and again when its order has vanished from the bucket.

The bucket is derived from the rows of live allocations, and may be lost with the disk of the bus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog
from sqlalchemy import select

from libs.bus import Bus
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.engine import Connection, Database
from libs.db.outbox import enqueue, key_withdrawal
from libs.db.tables.cluster import outbox
from libs.db.tables.tasks import allocations
from libs.db.transactions import in_transaction
from libs.events import subjects
from libs.events.capacity import PoolCapacity
from libs.events.orders import Order
from libs.ids import new_random_part
from services.scheduler.allocations.ended import clear_ended
from services.scheduler.allocations.exits import ExitKind, internal_error
from services.scheduler.allocations.task_tokens import Holder, mint
from services.scheduler.allocations.termination import finish, stop_order
from services.scheduler.orders.order_keys import OrderKeys
from services.scheduler.orders.placeholder_rows import keep_placeholders, ordered_placeholders
from services.scheduler.orders.task_specs import TaskMaterial
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, Locked, lock_many

log = structlog.get_logger()

MAX_ORDER_BYTES: Final = 1_000_000
"""What a NATS server takes as one message unless configured otherwise (max_payload 1 MiB, headers included)."""
YOUNG: Final = timedelta(seconds=15)
"""Allocations that got their slots so recently are left to the relay of the outbox."""


async def issue(
    connection: Connection,
    rows: Sequence[AllocationRow],
    *,
    cluster: ClusterConfig,
    now: datetime,
    out: OutboxBuffer,
    material: TaskMaterial | None = None,
) -> None:
    """Order the launchers to run ``rows``, which are locked and have their slots; one that makes no order is over."""
    material = material or await TaskMaterial.load(connection, rows, cluster=cluster)
    for row in rows:
        if not material.is_whole(row):
            log.error("order.impossible", allocation=row.allocation_id, error="its workspace is gone")
            finish(row, internal_error(ExitKind.INVALID, "its workspace is gone"), now=now, out=out)
    whole = [row for row in rows if material.is_whole(row)]
    holders = [Holder(row.allocation_id, material.owner_id(row)) for row in whole]
    for row, tokens in zip(whole, await mint(connection, holders), strict=True):
        try:
            order = Order(
                allocation=row.allocation_id,
                pool=row.pool,
                desired="run",
                spec=material.spec(row, tokens),
                namespace=row.namespace,
                random_part=new_random_part(),
            )
            size = len(msgspec.json.encode(order))
        except Exception as error:
            # What is stored may be anything, and the other rows, of other users, are planned in the same transaction.
            log.exception("order.impossible", allocation=row.allocation_id)
            reason = f"{error} is missing" if isinstance(error, KeyError) else repr(error)
            record = internal_error(ExitKind.INVALID, f"its configuration makes no task: {reason}")
            finish(row, record, now=now, out=out)
            continue
        if size > MAX_ORDER_BYTES:
            text = f"its configuration is too large: {size} bytes, of {MAX_ORDER_BYTES} that an order may have"
            finish(row, internal_error(ExitKind.INVALID, text), now=now, out=out)
            continue
        out.order(order)


class OrderRepair:
    """Compares the bucket with the rows of live allocations, and puts right what differs.

    capacity  of a pool, as it is now; None where it is not known
    """

    def __init__(
        self,
        *,
        db: Database,
        bus: Bus,
        clock: Clock,
        cluster: ClusterConfig,
        keys: OrderKeys,
        capacity: Callable[[str], PoolCapacity | None],
    ) -> None:
        self._keys = keys
        self._capacity = capacity
        self._growing = [pool for pool in cluster.resource_pools if pool.growth is not None]
        self._reused = frozenset(subjects.placeholders_key(pool.pool_name) for pool in self._growing)
        self._db = db
        self._bus = bus
        self._clock = clock
        self._cluster = cluster

    async def repair(self) -> int:
        """Write missing orders again and withdraw those of allocations that are over; returns how many.

        Nothing happens while it is not known which there are. Raises Unavailable when the bus does not answer.
        """
        if self._keys.present is None:
            return 0
        # Keys first: an allocation that gets its slots afterwards is too young to be missed.
        present = set(self._keys.present)
        live = select(allocations.c.allocation_id, allocations.c.pool, allocations.c.assigned_at).where(
            allocations.c.released_at.is_(None), allocations.c.assigned_at.is_not(None)
        )
        async with self._db.read() as connection:
            rows = list(await connection.execute(live))
            pools = [order.pool for order in await ordered_placeholders(connection, self._growing)]
            placeholders = {subjects.placeholders_key(pool): pool for pool in pools}
            wanted = {subjects.order_key(row.pool, row.allocation_id): row for row in rows}
            missing, stale = wanted.keys() - present, present - wanted.keys() - placeholders.keys()
            unheld = placeholders.keys() - present
            if not missing and not stale and not unheld:
                return 0
            under_way = await self._under_way(connection, missing | stale | unheld)
        too_young = self._clock.now() - YOUNG
        missing = {key for key in missing - under_way if wanted[key].assigned_at <= too_young}
        lost = sorted([wanted[key].allocation_id for key in missing if not await self._exists(key)])
        for allocation in lost:
            await in_transaction(self._db, lambda connection, ident=allocation: self._rewrite(connection, ident))  # type: ignore[misc]
        left = sorted([key for key in stale - under_way if await self._exists(key)])
        left = await self._withdraw(left)
        again = sorted([key for key in unheld - under_way if not await self._exists(key)])
        for key in again:
            await in_transaction(self._db, lambda connection, pool=placeholders[key]: self._hold(connection, pool))  # type: ignore[misc]
        return len(lost) + len(left) + len(again)

    async def _exists(self, key: str) -> bool:
        return await self._bus.bucket(subjects.ORDERS_BUCKET).get(key) is not None

    async def _under_way(self, connection: Connection, keys: set[str]) -> set[str]:
        """Keys about which the outbox still has something to say."""
        by_subject = {subjects.kv_subject(subjects.ORDERS_BUCKET, key): key for key in keys}
        query = select(outbox.c.subject).where(any_of(outbox.c.subject, by_subject))
        return {by_subject[subject] for subject in (await connection.execute(query)).scalars()}

    async def _rewrite(self, connection: Connection, allocation: str) -> None:
        locked: Locked[AllocationRow] = Locked()
        condition = (allocations.c.allocation_id == allocation) & allocations.c.released_at.is_(None)
        rows = await lock_many(connection, AllocationRow, condition, locked)
        out = OutboxBuffer()
        now = self._clock.now()
        for row in rows:
            log.warning("order.written_again", allocation=allocation)
            if row.killed_at is not None:
                out.order(stop_order(row))
            else:
                material = await self._material(connection, row)
                await issue(connection, [row], cluster=self._cluster, now=now, out=out, material=material)
        await locked.write(connection)
        await clear_ended(connection, out.events, now=now)
        await out.flush(connection)

    async def _material(self, connection: Connection, row: AllocationRow) -> TaskMaterial:
        capacity = self._capacity(row.pool)
        sees_nodes = capacity is None or capacity.sees_nodes
        return await TaskMaterial.load(connection, [row], cluster=self._cluster, sees_nodes=sees_nodes)

    async def _hold(self, connection: Connection, pool: str) -> None:
        """Order the placeholders of a pool again, if they are still wanted."""
        out = OutboxBuffer()
        for order in await ordered_placeholders(connection, [each for each in self._growing if each.pool_name == pool]):
            log.warning("placeholders.ordered_again", pool=pool, allocation=order.allocation)
            out.placeholders(order)
        await out.flush(connection)

    async def _withdraw(self, keys: Sequence[str]) -> list[str]:
        """Withdraw what nobody wants; returns which of ``keys`` that were.

        Unlike those of allocations, keys of placeholders are used again: one may be wanted since the rows were read.
        """
        if not keys:
            return []
        async with self._db.transaction() as connection:
            wanted: set[str] = set()
            if not self._reused.isdisjoint(keys):
                await keep_placeholders(connection)
                ordered = await ordered_placeholders(connection, self._growing)
                wanted = {subjects.placeholders_key(order.pool) for order in ordered}
            stale = [key for key in keys if key not in wanted]
            await enqueue(connection, *(key_withdrawal(key) for key in stale))
        if stale:
            log.warning("order.withdrawn_again", keys=stale)
        return stale
