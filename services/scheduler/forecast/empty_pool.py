"""Whether a pool could run a request if nothing else ran in it, as the planner sees it: asked when work is submitted.

It is the plan of that request alone, so that what a plan among all others calls possible (queue_checks.py) is possible
here.
"""

from __future__ import annotations

from typing import Final

from libs.events.capacity import PoolCapacity
from libs.events.requests.queue_checks import EmptyPoolRequest, QueueAnswer
from services.scheduler.allocations.pod_sizes import PoolDivision, planned_pods
from services.scheduler.plan.decisions import Decision, Start, Wait
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import EPOCH, PendingAllocation, PoolSnapshot
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.pool_rows import nodes_of

IMPOSSIBLE: Final = frozenset(
    {WaitReason.TOO_LARGE, WaitReason.NO_SUCH_NODE, WaitReason.NO_SUCH_DOMAIN, WaitReason.NODES_EXCLUDED}
)
"""Reasons for which something would wait as long as the nodes are what they are."""


def in_empty_pool(
    asked: EmptyPoolRequest, capacity: PoolCapacity | None, memory: PoolMemory, division: PoolDivision
) -> QueueAnswer:
    """Possible where nobody knows the capacity. Nodes that are out of service count as if they were in service."""
    if capacity is None:
        return QueueAnswer()
    row = {"slots": asked.slots, "num_pods": asked.num_pods}
    if division.has_to_wait(row):
        return answer_of(Wait("", WaitReason.EQUAL_PODS))
    pods, most = planned_pods(slots=asked.slots, num_pods=asked.num_pods, most_per_pod=division.most_per_pod(row))
    request = PendingAllocation(
        allocation="",
        job="",
        pods=pods,
        most_per_pod=most,
        priority=0,
        submitted_at=EPOCH,
        requested_at=EPOCH,
        needs=memory.needs_of_pod(asked.task_type, asked.pod_spec, pods[0], capacity),
        topology=memory.topology(asked.topology),
    )
    nodes = nodes_of(capacity, shaped=memory.shaped(capacity), domains=memory.domains(capacity))
    pool = PoolSnapshot(nodes=nodes, pending=(request,), levels=memory.levels)
    [decision] = plan(pool, memory.eligibility).decisions
    return answer_of(decision)


def answer_of(decision: Decision) -> QueueAnswer:
    """What a plan says of a request, without an estimate."""
    if isinstance(decision, Start):
        return QueueAnswer(starts_now=True, nodes=tuple(place.node for place in decision.placements))
    return QueueAnswer(
        is_possible=decision.reason not in IMPOSSIBLE, reason_code=decision.reason.code, reason=decision.sentence
    )
