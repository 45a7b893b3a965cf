"""Rows of what waits for its slots in a pool: what was queued there, and guests, whose jobs may start there when they
have waited long enough elsewhere (resources.fallback_pools).

A guest is in several queues at once and has to start in one. Plans of pools in which something has several queues
follow one another, by an advisory lock that comes after that of the pool; each reads what waits when it has the lock,
and so knows what those before it have started, or asked others to leave for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.reasons import WaitReason

log = structlog.get_logger()

Row = Mapping[Any, Any]

LOCK: Final = 0x5E50_1184
"""Advisory lock of plans in which something has several queues; before that of limits of all pools."""
_LOCK: Final = PreparedStatement("SELECT pg_advisory_xact_lock(:key::bigint)")
_PENDING: Final = PreparedStatement("""
    SELECT a.allocation_id, a.job_id, a.task_id, t.task_type, a.slots, a.num_pods, a.blocked_nodes, a.requested_at,
           a.wait_reason, a.time_limit_s, a.ran_before_s, a.preemption_timeout_s,
           coalesce(j.submitted_at, a.requested_at) AS submitted_at, j.priority, j.max_slots, j.queue_position,
           coalesce(nullif(b.namespace, :own), '') AS namespace, coalesce(t.task_type = 'TRIAL', false) AS is_trial,
           a.pool, a.not_before,
           a.preemptible, j.owner_id, j.workspace_id, j.weight, q.blocked_at, q.overtaken, q.nominated,
           m.job_id IS NOT NULL AS has_several_queues,
           m.job_id IS NOT NULL AND EXISTS (
               SELECT FROM queue_states e
               WHERE e.allocation_id = a.allocation_id AND e.pool <> :pool AND e.pool = ANY(:pools::text[])
                 AND e.nominated <> '[]'
           ) AS is_nominated_elsewhere
    FROM (
        SELECT allocation_id, job_id, task_id, slots, num_pods, blocked_nodes, requested_at, wait_reason, time_limit_s,
               ran_before_s, preemption_timeout_s, pool, preemptible, NULL::timestamptz AS not_before
        FROM allocations WHERE pool = :pool AND released_at IS NULL AND assigned_at IS NULL
        UNION ALL
        SELECT g.allocation_id, g.job_id, g.task_id, g.slots, o.num_pods, g.blocked_nodes, g.requested_at,
               g.wait_reason, o.time_limit_s, g.ran_before_s, g.preemption_timeout_s, g.pool, g.preemptible,
               g.requested_at + make_interval(secs => o.after_s) AS not_before
        FROM pool_offers o JOIN allocations g ON g.job_id = o.job_id
        WHERE o.pool = :pool AND o.is_open AND o.rank > 0
          AND g.pool <> :pool AND g.released_at IS NULL AND g.assigned_at IS NULL
          AND (:ahead::boolean OR g.requested_at + make_interval(secs => o.after_s) <= :now::timestamptz)
    ) a
    LEFT JOIN (SELECT DISTINCT job_id FROM pool_offers WHERE is_open AND rank > 0) m ON m.job_id = a.job_id
    LEFT JOIN queue_states q ON q.allocation_id = a.allocation_id AND q.pool = :pool
    LEFT JOIN tasks t ON t.task_id = a.task_id
    LEFT JOIN jobs j ON j.job_id = a.job_id
    LEFT JOIN workspace_namespace_bindings b ON b.workspace_id = j.workspace_id AND b.cluster_name = :cluster
""")
# Others are asked to leave, are killed when their time is up, and end soon after. Where that is not seen, nothing is
# heard of the pool, and what waits for them may start where there is room.
_GIVE_UP: Final = PreparedStatement("""
    UPDATE queue_states SET nominated = '[]'
    WHERE pool <> :pool AND allocation_id = ANY(:allocations::text[]) AND nominated <> '[]'
      AND NOT EXISTS (
          SELECT FROM wait_notes n
          WHERE n.allocation_id = queue_states.allocation_id AND n.task_id = ANY(:tasks::text[])
            AND n.code = :preempting AND n.since > :since::timestamptz
      )
      AND NOT EXISTS (
          SELECT FROM allocations v
          WHERE v.pool = queue_states.pool AND v.released_at IS NULL AND v.assigned_at IS NOT NULL
            AND coalesce(v.killed_at, v.preempt_deadline) > :since::timestamptz
      )
    RETURNING allocation_id
""")
LEAVING_GRACE: Final = timedelta(minutes=5)
"""How long a request still waits in one pool alone: after the time that others had to leave it, and, where all of them
have left, after it was first said that it waits for them."""

_HELD_ELSEWHERE: Final = PreparedStatement("""
    SELECT a.allocation_id, a.job_id, a.slots, a.num_pods, '[]'::jsonb AS places, a.pods, '' AS namespace,
           a.preempted_at IS NOT NULL OR a.killed_at IS NOT NULL AS leaving
    FROM allocations a
    WHERE a.pool <> :pool AND a.job_id = ANY(:jobs::text[]) AND a.released_at IS NULL AND a.assigned_at IS NOT NULL
""")


class Guest(Struct, frozen=True):
    """How something runs that starts in another pool than its own."""

    pool: str
    """In which it was queued."""
    num_pods: int
    time_limit_s: int | None


async def pending_rows(
    connection: Connection,
    pool: str,
    *,
    pools: Collection[str],
    now: datetime,
    is_carried_out: bool,
    guests_ahead: bool = False,
    **places: object,
) -> list[Row]:
    """Those that a plan of ``pool`` may start; a guest has the pods and the time limit that it would have there.

    pools           all that there are
    is_carried_out  then nobody else plans for what has several queues until the transaction ends
    guests_ahead    those, too, that have not waited long enough yet; ``not_before`` says until when
    Left out is what others were asked to leave for in another pool, unless they should have left long ago
    (``LEAVING_GRACE``): then that pool has to ask anew.
    """
    asked = {"pool": pool, "pools": sorted(pools), "now": now, "ahead": guests_ahead, **places}
    rows = await _PENDING.rows(connection, **asked)
    if is_carried_out and any(row["has_several_queues"] for row in rows):
        await _LOCK.rows(connection, key=LOCK)
        rows = await _PENDING.rows(connection, **asked)
        if any(row["is_nominated_elsewhere"] for row in rows) and await _give_up(connection, pool, rows, now=now):
            rows = await _PENDING.rows(connection, **asked)
    return [row for row in rows if not row["is_nominated_elsewhere"]]


async def _give_up(connection: Connection, pool: str, rows: Sequence[Row], *, now: datetime) -> bool:
    """Whether some of ``rows`` wait no more for others that do not leave another pool."""
    elsewhere = [row for row in rows if row["is_nominated_elsewhere"]]
    given_up = await _GIVE_UP.rows(
        connection,
        pool=pool,
        allocations=[row["allocation_id"] for row in elsewhere],
        tasks=[row["task_id"] for row in elsewhere],
        preempting=WaitReason.PREEMPTING.code,
        since=now - LEAVING_GRACE,
    )
    for row in given_up:
        log.warning("guest.others_do_not_leave", allocation=row["allocation_id"], pool=pool)
    return bool(given_up)


def guests_of(pool: str, rows: Sequence[Row]) -> dict[str, Guest]:
    """Those of ``rows`` that were queued elsewhere, by allocation."""
    return {
        row["allocation_id"]: Guest(row["pool"], row["num_pods"], row["time_limit_s"])
        for row in rows
        if row["pool"] != pool
    }


async def held_elsewhere_by_jobs(connection: Connection, pool: str, rows: Sequence[Row]) -> Sequence[Row]:
    """What jobs of ``rows`` that have several queues, and a limit of slots, hold in other pools."""
    jobs = {row["job_id"] for row in rows if row["has_several_queues"] and row["max_slots"] is not None}
    return await _HELD_ELSEWHERE.rows(connection, pool=pool, jobs=sorted(jobs)) if jobs else ()
