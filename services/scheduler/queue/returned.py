"""How often tasks that wait were preempted lately, from the rows of their former allocations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.states.allocation import CLUSTER_PREEMPTS

REMEMBERED: Final = timedelta(days=1)
"""What was longer ago does not count: a task of many weeks is not made to wait for all of them."""

# The first allocation of a task, which most are that wait, has none before it.
_RETURNED: Final = PreparedStatement("""
    SELECT a.allocation_id, count(*) AS times
    FROM allocations a JOIN allocations former ON former.task_id = a.task_id
    WHERE a.pool = :pool AND a.released_at IS NULL AND a.assigned_at IS NULL AND a.allocation_id NOT LIKE '%.1'
      AND former.released_at > :since AND coalesce(former.preempt_reason, former.kill_reason) = :reason
    GROUP BY a.allocation_id
""")


async def times_preempted(connection: Connection, pool: str, now: datetime) -> Mapping[str, int]:
    """By pending allocation of the pool; those whose task was not preempted are left out."""
    rows = await _RETURNED.rows(connection, pool=pool, since=now - REMEMBERED, reason=CLUSTER_PREEMPTS)
    return {row["allocation_id"]: row["times"] for row in rows}
