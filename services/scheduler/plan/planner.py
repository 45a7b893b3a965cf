"""Plans one pool by its policy: a pure function of a snapshot. The same snapshot gives the same plan.

Work with slots and work without have queues of their own: a stuck training job does not keep a TensorBoard from
starting. Source: docs/reference/scheduling.md 5; the seven bounds that it lacks are in 16.
"""

from __future__ import annotations

from services.scheduler.plan.decisions import Plan, Wait
from services.scheduler.plan.growth.growing import GrowthOfPlan
from services.scheduler.plan.maintenance import ClosedNodesOfPlan
from services.scheduler.plan.nodes.eligible import EligibilityMemo, EligibleNodes
from services.scheduler.plan.nodes.shapes import UNKNOWN, ShapedNode
from services.scheduler.plan.preemption.consolidation import movable
from services.scheduler.plan.preemption.searched import SearchMemo
from services.scheduler.plan.queue_pass import QueuePass
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.room.demand import Demands
from services.scheduler.plan.room.stock import Stock
from services.scheduler.plan.settling import LOOKED_AT_AGAIN, LOOKS, carried_out, is_settled, merged
from services.scheduler.plan.snapshot import NodeSlots, PendingAllocation, PoolSnapshot
from services.scheduler.plan.topology.domains import domains_of


def plan(
    pool: PoolSnapshot,
    memo: EligibilityMemo | None = None,
    searched: SearchMemo | None = None,
    *,
    settles: bool = True,
) -> Plan:
    """What happens to each pending request of ``pool``; the order of the snapshot's tuples does not matter.

    memo      keeps from plan to plan which nodes may run what; the plan is the same without it
    searched  keeps for whom nothing could be moved; without it the plan might move something a minute sooner
    settles   the plan goes on until it has nothing left to do, which takes several looks; else that is left to the next
    """
    if pool.nodes is None:
        unknown = (Wait(request.allocation, WaitReason.CAPACITY_UNKNOWN) for request in pool.pending)
        return Plan(decisions=tuple(unknown))
    closed = ClosedNodesOfPlan(pool)
    growth = GrowthOfPlan(closed.pool)
    pool = growth.pool
    passes = _Passes(pool, memo, searched)
    made = looked = passes.run()
    for _ in range(LOOKS if settles and len(pool.pending) <= LOOKED_AT_AGAIN else 0):
        if is_settled(looked, pool.policy):
            break
        pool = carried_out(pool, looked)
        passes = _Passes(pool, memo)
        looked = passes.run()
        made = merged(made, looked)
    return closed.explain(growth.decide(made, passes.of))


class _Passes:
    """A look at both queues."""

    def __init__(self, pool: PoolSnapshot, memo: EligibilityMemo | None, searched: SearchMemo | None = None) -> None:
        nodes, moved = pool.nodes or (), movable(pool)
        demands = Demands((*pool.pending, *moved.values()), _eligible(nodes, memo), domains_of(pool))
        self._stock = Stock(nodes, (*pool.held, *pool.moving))
        self._with_slots = QueuePass(pool, demands, self._stock, auxiliary=False, movable=moved, searched=searched)
        self._pool, self._demands = pool, demands
        self._auxiliary: QueuePass | None = None

    def run(self) -> Plan:
        with_slots = self._with_slots.run()
        self._stock.next_lane()
        self._auxiliary = QueuePass(self._pool, self._demands, self._stock, auxiliary=True)
        auxiliary = self._auxiliary.run()
        return Plan(
            decisions=(*with_slots.decisions, *auxiliary.decisions),
            preempted=(*with_slots.preempted, *auxiliary.preempted),
            nominated=(*with_slots.nominated, *auxiliary.nominated),
            blocked=(*with_slots.blocked, *auxiliary.blocked),
            moved=with_slots.moved,
        )

    def of(self, request: PendingAllocation) -> QueuePass:
        """The pass that ``request`` was planned in."""
        assert self._auxiliary is not None
        return self._with_slots if request.slots else self._auxiliary


def _eligible(nodes: tuple[NodeSlots, ...], memo: EligibilityMemo | None) -> EligibleNodes | None:
    """None where only slots are known of the nodes."""
    if all(node.shaped is None for node in nodes):
        return None
    memo = EligibilityMemo() if memo is None else memo
    return memo.of([node.shaped or ShapedNode(name=node.name, shape=UNKNOWN) for node in nodes])
