"""Which other pools have something to plan after a plan, because something has a queue in several of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.queue.guests.pending_rows import Row

_OFFERS: Final = PreparedStatement("SELECT job_id, pool, after_s FROM pool_offers WHERE job_id = ANY(:jobs::text[])")


class Wakes:
    """Of one pool. That something has waited long enough for another pool, or waits for those who leave here, is told
    once: pools would wake each other for ever otherwise. What is missed, the next plan of that pool finds by itself."""

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._told: set[tuple[str, str, bool]] = set()
        """Allocations, the pools that were told of them, and whether others leave for them here."""

    async def after(
        self,
        connection: Connection,
        pending: Sequence[Row],
        *,
        started: Collection[str],
        nominated: Collection[str],
        now: datetime,
    ) -> frozenset[str]:
        """Names of pools.

        pending    what waited before the plan
        started    allocations that wait nowhere any more
        nominated  those for which others leave here, so that they wait in no other queue
        """
        several = [row for row in pending if row["has_several_queues"]]
        if not several:
            self._told.clear()
            return frozenset()
        jobs = sorted({row["job_id"] for row in several})
        offers: dict[str, dict[str, timedelta]] = {}
        for offer in await _OFFERS.rows(connection, jobs=jobs):
            offers.setdefault(offer["job_id"], {})[offer["pool"]] = timedelta(seconds=offer["after_s"])
        woken: set[str] = set()
        due: set[tuple[str, str, bool]] = set()
        for row in several:
            allocation, of_job = row["allocation_id"], offers.get(row["job_id"], {})
            if allocation in started:
                woken |= {row["pool"], *of_job}
            elif allocation in nominated:
                due |= {(allocation, pool, True) for pool in (row["pool"], *of_job)}
            else:
                due |= {
                    (allocation, pool, False) for pool, after in of_job.items() if row["requested_at"] + after <= now
                }
        woken |= {pool for _, pool, _ in due - self._told}
        self._told = due
        return frozenset(woken - {self._pool})
