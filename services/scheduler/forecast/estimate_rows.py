"""Rows of estimates: written with each round, and compared with what happened when an allocation has started."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.forecast.estimates import StartEstimate

KEPT: Final = timedelta(days=30)
"""How long errors of estimates are remembered."""
COMPARED: Final = 1000
"""Starts of a pool, the last ones, whose estimates are looked at."""

_WRITE: Final = PreparedStatement("""
    INSERT INTO start_estimates AS known (
        allocation_id, pool, estimated_at, basis, jobs_ahead, slots_ahead, made_at, first_estimate, first_made_at
    )
    SELECT e.allocation_id, :pool::text, e.estimated_at, e.basis, e.jobs_ahead, e.slots_ahead, :now::timestamptz,
           e.estimated_at, CASE WHEN e.estimated_at IS NOT NULL THEN :now::timestamptz END
    FROM jsonb_to_recordset(:estimates::jsonb) AS e (
        allocation_id text, estimated_at timestamptz, basis text, jobs_ahead integer, slots_ahead integer
    )
    ON CONFLICT (allocation_id) DO UPDATE
    SET pool = excluded.pool, estimated_at = excluded.estimated_at, basis = excluded.basis,
        jobs_ahead = excluded.jobs_ahead, slots_ahead = excluded.slots_ahead, made_at = excluded.made_at,
        first_estimate = CASE WHEN known.pool = excluded.pool AND known.first_estimate IS NOT NULL
                         THEN known.first_estimate ELSE excluded.first_estimate END,
        first_made_at = CASE WHEN known.pool = excluded.pool AND known.first_estimate IS NOT NULL
                        THEN known.first_made_at ELSE excluded.first_made_at END
""")
# Those that have left the head of their queue, as others have been put before them, are estimated no longer.
_FORGET: Final = PreparedStatement("DELETE FROM start_estimates WHERE pool = :pool AND made_at <> :now")
# What was estimated to start at once, and did, says nothing of what people were told who wait.
_SETTLE: Final = PreparedStatement("""
    WITH over AS (
        DELETE FROM start_estimates e
        WHERE NOT EXISTS (
            SELECT FROM allocations a
            WHERE a.allocation_id = e.allocation_id AND a.released_at IS NULL AND a.assigned_at IS NULL
        )
        RETURNING e.allocation_id, e.pool, e.first_made_at, e.first_estimate
    )
    INSERT INTO estimate_errors (allocation_id, pool, made_at, estimated_at, started_at)
    SELECT o.allocation_id, o.pool, o.first_made_at, o.first_estimate, a.assigned_at
    FROM over o JOIN allocations a ON a.allocation_id = o.allocation_id
    WHERE a.assigned_at IS NOT NULL AND o.first_estimate > o.first_made_at
    ON CONFLICT DO NOTHING
    RETURNING pool
""")
_EXPIRE: Final = PreparedStatement("DELETE FROM estimate_errors WHERE started_at < :before")
_ERRORS: Final = PreparedStatement("""
    SELECT percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY error) AS errors FROM (
        SELECT abs(extract(epoch FROM started_at - estimated_at))::float8 AS error
        FROM estimate_errors WHERE pool = :pool ORDER BY started_at DESC LIMIT :compared
    ) last
""")


class EstimateErrors(Struct, frozen=True):
    """Seconds between the first estimate and the start, of the last starts of a pool."""

    median_s: float
    p90_s: float


async def write_estimates(
    connection: Connection, pool: str, estimates: Iterable[StartEstimate], *, now: datetime
) -> None:
    """These are all the estimates that there are of ``pool``."""
    rows = [
        {
            "allocation_id": one.allocation,
            "estimated_at": one.at,
            "basis": one.basis,
            "jobs_ahead": one.ahead.jobs,
            "slots_ahead": one.ahead.slots,
        }
        for one in sorted(estimates, key=lambda one: one.allocation)
    ]
    if rows:
        await _WRITE.rows(connection, pool=pool, estimates=msgspec.json.encode(rows).decode(), now=now)
    await _FORGET.rows(connection, pool=pool, now=now)


async def settle_estimates(connection: Connection, *, now: datetime) -> set[str]:
    """Compare the estimates of what does not wait any more with what happened; the pools in which something has
    started."""
    settled = await _SETTLE.rows(connection)
    await _EXPIRE.rows(connection, before=now - KEPT)
    return {row["pool"] for row in settled}


async def read_errors(connection: Connection, pool: str) -> EstimateErrors | None:
    """None where nothing has started yet of which an estimate was made."""
    (row,) = await _ERRORS.rows(connection, pool=pool, compared=COMPARED)
    return None if row["errors"] is None else EstimateErrors(*row["errors"])
