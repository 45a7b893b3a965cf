"""Nodes that a request may not use because of maintenance: it would still run there when that begins.

What has a time limit starts where it ends before; what has none, as long as it can run for a moment until it is asked
to leave. From then on the nodes are closed to it, as those are that log policies exclude.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from services.scheduler.plan.decisions import Decision, Plan, Wait
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import Maintenance, PendingAllocation, PoolSnapshot

SHORTEST_RUN: Final = timedelta(minutes=1)
"""What has no limit does not start where it would be asked to leave before that."""
_SAID_WITH: Final = frozenset(
    {
        WaitReason.MAINTENANCE,
        WaitReason.NO_ROOM,
        WaitReason.NO_AUX_ROOM,
        WaitReason.NO_RESOURCES,
        WaitReason.TOPOLOGY,
        WaitReason.BEHIND_RESERVATION,
    }
)
"""Reasons of those that might start if those nodes were open to them."""


class ClosedNodesOfPlan:
    """``pool`` is the snapshot in which the requests may not use the nodes that are closed to them."""

    def __init__(self, pool: PoolSnapshot) -> None:
        self._now = pool.now
        windows = [one for one in pool.maintenance if one.ends_at > pool.now]
        self._windows = sorted(windows, key=lambda one: (one.starts_at, one.ends_at, one.text))
        self._closing: dict[timedelta, tuple[Maintenance, ...]] = {}
        self.pool = pool
        if self._windows:
            close = self._closer()
            self.pool = msgspec.structs.replace(pool, pending=tuple(close(one) for one in pool.pending))

    def explain(self, plan: Plan) -> Plan:
        """The plan, in which those that wait say which maintenance is in their way."""
        if not self._windows:
            return plan
        closed = {one.allocation: one for one in self.pool.pending if one.closed_nodes}

        def explained(decision: Decision) -> Decision:
            request = closed.get(decision.allocation)
            if request is None or not isinstance(decision, Wait) or decision.reason not in _SAID_WITH:
                return decision
            said = [one.text for one in self._in_the_way(request) if one.nodes & request.closed_nodes]
            return msgspec.structs.replace(decision, detail="; ".join(filter(None, (decision.detail, *said))))

        return msgspec.structs.replace(plan, decisions=tuple(explained(one) for one in plan.decisions))

    def _closer(self) -> Callable[[PendingAllocation], PendingAllocation]:
        known: dict[tuple[timedelta, frozenset[str]], tuple[frozenset[str], frozenset[str]]] = {}

        def close(request: PendingAllocation) -> PendingAllocation:
            key = _needs(request), request.blocked_nodes
            if key not in known:
                nodes = frozenset[str]().union(*(one.nodes for one in self._in_the_way(request)))
                known[key] = request.blocked_nodes | nodes, nodes - request.blocked_nodes
            blocked, closed = known[key]
            if not closed:
                return request
            return msgspec.structs.replace(request, blocked_nodes=blocked, closed_nodes=closed)

        return close

    def _in_the_way(self, request: PendingAllocation) -> tuple[Maintenance, ...]:
        needs = _needs(request)
        if needs not in self._closing:
            until = self._now + needs
            self._closing[needs] = tuple(one for one in self._windows if one.starts_at < until)
        return self._closing[needs]


def _needs(request: PendingAllocation) -> timedelta:
    """How long before a window it would have to start."""
    runs_for = request.runs_for
    # Nothing starts within a window, however short it is.
    return request.asked_before + SHORTEST_RUN if runs_for is None else max(runs_for, timedelta(seconds=1))
