"""Tells the owners of trials whose training code has stopped asking whether to leave.

A task whose connections to the api fail, because it does not trust a certificate or a network policy is in the way,
says nothing itself: the harness tries again for ever. It keeps a poll open nearly all of the time; that none is there
is what can be seen from here. After an outage of the api nobody is told anything until the polls could have come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import select, update

from libs.clock import Clock
from libs.db.engine import Connection, Database
from libs.db.tables.tasks import allocations, preemption_polls, tasks
from libs.db.transactions import in_transaction
from libs.states.allocation import AllocationState
from libs.tasks.preemption_polls import ABSENCE, NOTED_EVERY, absence_line, absent_since_before
from libs.telemetry import counter
from services.scheduler.transactions.allocation_messages import note
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow, Locked, lock_one
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

CHECK_S: Final = 30.0
ABSENT: Final = counter(
    "resolute_scheduler_absent_polls_total",
    "Trials that run and have stopped asking the api whether to leave, as those do that cannot connect to it",
)
_ENDING: Final = (AllocationState.TERMINATING, AllocationState.TERMINATED)


class AbsentPolls:
    """polls_are_heard  whether there is an api now that would note a poll"""

    def __init__(self, *, db: Database, clock: Clock, polls_are_heard: Callable[[], Awaitable[bool]]) -> None:
        self._db = db
        self._clock = clock
        self._polls_are_heard = polls_are_heard
        self._heard_since: datetime | None = None

    async def run(self) -> None:
        """Now and then, until cancelled."""
        await run_periodically("absent polls", self.check, every_s=CHECK_S, wake=asyncio.Event())

    async def check(self) -> list[str]:
        """Tell of each absence once; returns the allocations whose owners were told."""
        # Set again at the end: a check that does not get there counts as an outage.
        heard_since, self._heard_since = self._heard_since, None
        now = self._clock.now()
        if not await self._polls_are_heard():
            return []
        heard_since = heard_since or now
        told = []
        if now - heard_since >= ABSENCE + NOTED_EVERY:
            told = [one for one in await self._absent(now) if await self._tell(one, now)]
        self._heard_since = heard_since
        return told

    async def _absent(self, now: datetime) -> list[str]:
        columns, polls = allocations.c, preemption_polls.c
        query = (
            select(columns.allocation_id)
            .join(preemption_polls, polls.allocation_id == columns.allocation_id)
            .join(tasks, tasks.c.task_id == columns.task_id)
            .where(
                columns.released_at.is_(None),
                # With a reason and no time yet it is asked to leave, too.
                columns.preempt_reason.is_(None),
                columns.kill_reason.is_(None),
                columns.state.not_in(_ENDING),
                tasks.c.task_type == "TRIAL",
                polls.absence_noted_at.is_(None),
                polls.polled_at < absent_since_before(now),
            )
            .order_by(columns.allocation_id)
        )
        async with self._db.read() as connection:
            return list((await connection.execute(query)).scalars())

    async def _tell(self, allocation: str, now: datetime) -> bool:
        """Whether it is told now: it may have asked, have been told of, or have ended since it was found."""

        async def work(connection: Connection) -> bool:
            locked: Locked[AllocationRow] = Locked()
            row = await lock_one(connection, AllocationRow, allocation, locked)
            if row is None or row.state in _ENDING or row.preempt_reason is not None or row.kill_reason is not None:
                return False
            polls = preemption_polls.c
            telling = (
                update(preemption_polls)
                .where(
                    polls.allocation_id == allocation,
                    polls.absence_noted_at.is_(None),
                    polls.polled_at < absent_since_before(now),
                )
                .values(absence_noted_at=now)
                .returning(polls.polled_at)
            )
            polled_at = await connection.scalar(telling)
            if polled_at is None:
                return False
            out = OutboxBuffer()
            note(row, absence_line(polled_at), now=now, out=out, level="WARNING")
            await out.flush(connection)
            return True

        is_told = await in_transaction(self._db, work)
        if is_told:
            ABSENT.inc()
            log.warning("allocation.polls_absent", allocation=allocation)
        return is_told
