"""A pool in virtual time: one plan a minute, carried out at once, and tasks that take as long as each other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot
from tests.scenarios.queue.notation import NOW


class VirtualQueue:
    """Who is asked to leave has left by the next plan, and comes back to the queue as another allocation."""

    def __init__(self, policy: PoolPolicy, *, nodes: Mapping[str, int], task_minutes: int) -> None:
        self.now = NOW
        self.pending: list[PendingAllocation] = []
        self.held: dict[str, HeldAllocation] = {}
        self._policy = policy
        self._nodes = tuple(NodeSlots(name=name, slots=slots, max_aux=0) for name, slots in nodes.items())
        self._takes = timedelta(minutes=task_minutes)
        self._count = 0

    @property
    def hours(self) -> float:
        """Since the beginning."""
        return (self.now - NOW) / timedelta(hours=1)

    def submit(self, job: str, pods: tuple[int, ...]) -> None:
        self._count += 1
        self.pending.append(
            PendingAllocation(
                allocation=f"{job}.{self._count}",
                job=job,
                pods=pods,
                priority=42,
                submitted_at=NOW + timedelta(seconds=self._count),
                requested_at=self.now,
                preemptible=True,
            )
        )

    def step(self) -> Plan:
        self.now += timedelta(minutes=1)
        for one in [one for one in self.held.values() if one.leaving]:
            del self.held[one.allocation]
            self.submit(one.job, tuple(slots for _, slots in one.pods))
        self.held = {name: one for name, one in self.held.items() if one.started_at > self.now - self._takes}
        made = plan(
            PoolSnapshot(
                nodes=self._nodes,
                held=tuple(self.held.values()),
                pending=tuple(self.pending),
                policy=self._policy,
                now=self.now,
            )
        )
        self._carry_out(made)
        return made

    def _carry_out(self, made: Plan) -> None:
        for gone in made.preempted:
            self.held[gone.allocation] = msgspec.structs.replace(self.held[gone.allocation], leaving=True)
        starts = {start.allocation: start.placements for start in made.starts}
        blocked = {one.allocation: one for one in made.blocked}
        nominated = {one.allocation: one.placements for one in made.nominated}
        left: list[PendingAllocation] = []
        for request in self.pending:
            name = request.allocation
            if name in starts:
                self.held[name] = HeldAllocation(
                    allocation=name,
                    job=request.job,
                    pods=tuple((place.node, place.slots) for place in starts[name]),
                    priority=request.priority,
                    submitted_at=request.submitted_at,
                    requested_at=request.requested_at,
                    preemptible=True,
                    started_at=self.now,
                )
                continue
            head = blocked.get(name)
            left.append(
                msgspec.structs.replace(
                    request,
                    nominated=nominated.get(name, request.nominated),
                    blocked_at=head.since if head else request.blocked_at,
                    overtaken=head.overtaken if head else request.overtaken,
                )
            )
        self.pending = left
