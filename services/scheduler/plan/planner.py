"""Plans one pool by its queue policy. Policies have one signature, snapshot in and decisions out."""

from __future__ import annotations

from services.scheduler.plan.decisions import Decision, Wait
from services.scheduler.plan.priority import plan_by_priority
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolSnapshot


def plan(pool: PoolSnapshot) -> list[Decision]:
    """What happens to each pending request of ``pool``; the order of the snapshot's tuples does not matter."""
    if pool.nodes is None:
        return [Wait(request.allocation, WaitReason.CAPACITY_UNKNOWN) for request in pool.pending]
    return plan_by_priority(pool)
