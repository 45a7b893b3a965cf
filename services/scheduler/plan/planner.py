"""Plans one pool by its policy: a pure function of a snapshot. The same snapshot gives the same plan.

Work with slots and work without have queues of their own: a stuck training job does not keep a TensorBoard from
starting. Source: docs/reference/scheduling.md 5; the seven bounds that it lacks are in 16.
"""

from __future__ import annotations

from services.scheduler.plan.decisions import Plan, Wait
from services.scheduler.plan.queue_pass import QueuePass
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolSnapshot


def plan(pool: PoolSnapshot) -> Plan:
    """What happens to each pending request of ``pool``; the order of the snapshot's tuples does not matter."""
    if pool.nodes is None:
        unknown = (Wait(request.allocation, WaitReason.CAPACITY_UNKNOWN) for request in pool.pending)
        return Plan(decisions=tuple(unknown))
    with_slots = QueuePass(pool, auxiliary=False).run()
    auxiliary = QueuePass(pool, auxiliary=True).run()
    return Plan(
        decisions=(*with_slots.decisions, *auxiliary.decisions),
        preempted=(*with_slots.preempted, *auxiliary.preempted),
        nominated=(*with_slots.nominated, *auxiliary.nominated),
        blocked=(*with_slots.blocked, *auxiliary.blocked),
    )
