"""A pool in virtual time: one plan a minute, carried out at once, and tasks that take as long as each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from libs.slot_hours.decay import decayed
from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.forecast.past_use import slots_by_share
from services.scheduler.plan.planner import plan
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import (
    HeldAllocation,
    NodeSlots,
    PendingAllocation,
    Placement,
    PoolPolicy,
    PoolSnapshot,
)
from services.scheduler.plan.topology.levels import TopologyRequest
from tests.scenarios.queue.notation import NOW

LEVEL = "rack"


class VirtualQueue:
    """Who is asked to leave has left by the next plan, and comes back to the queue as another allocation."""

    def __init__(
        self,
        policy: PoolPolicy,
        *,
        nodes: Mapping[str, int],
        task_minutes: int,
        weights: Mapping[str, float] | None = None,
        half_life: timedelta | None = None,
        racks: Mapping[str, str] | None = None,
        moves_per_hour: int = 0,
    ) -> None:
        """
        half_life       of what shares have used, where that is remembered
        racks           of the nodes, where they are in some
        moves_per_hour  what can be preempted can be moved
        """
        self.now = NOW
        self.pending: list[PendingAllocation] = []
        self.held: dict[str, HeldAllocation] = {}
        self.preempted: Counter[str] = Counter()
        """How often the task of an allocation had to leave before."""
        self._policy = policy
        self._nodes = tuple(
            NodeSlots(name=name, slots=slots, max_aux=0, domains=(racks[name],) if racks else ())
            for name, slots in nodes.items()
        )
        self._takes = timedelta(minutes=task_minutes)
        self._weights = weights or {}
        self._half_life = half_life
        self.past_use: dict[str, float] = {}
        self._moves_per_hour = moves_per_hour
        self.moved_at: list[datetime] = []
        self._moving: dict[str, tuple[Placement, ...]] = {}
        """Where those that are moved start again."""
        self.came_back: dict[str, tuple[Placement, ...]] = {}
        """Those of the last step that were moved, and where to."""
        self._count = 0

    @property
    def hours(self) -> float:
        """Since the beginning."""
        return (self.now - NOW) / timedelta(hours=1)

    @property
    def snapshot(self) -> PoolSnapshot:
        held, pending = tuple(self.held.values()), tuple(self.pending)
        return PoolSnapshot(
            nodes=self._nodes,
            held=held,
            pending=pending,
            policy=self._policy,
            weights=self._weights,
            past_use=self.past_use,
            levels=(LEVEL,),
            moving=tuple(
                msgspec.structs.replace(
                    self.held[name], pods=tuple((place.node, place.slots) for place in places), leaving=False
                )
                for name, places in self._moving.items()
            ),
            moves_left=self._moves_per_hour - sum(at > self.now - timedelta(hours=1) for at in self.moved_at),
            now=self.now,
        )

    def submit(
        self,
        job: str,
        pods: tuple[int, ...],
        *,
        priority: int = 42,
        preemptible: bool = True,
        share: str = "",
        topology: TopologyRequest | None = None,
    ) -> None:
        self._count += 1
        submitted_at = NOW + timedelta(seconds=self._count)
        self._request(
            job,
            pods,
            priority=priority,
            preemptible=preemptible,
            submitted_at=submitted_at,
            share=share,
            topology=topology,
        )

    def step(self) -> Plan:
        """A minute later: those who were asked have left, who is done has ended, and a plan is carried out."""
        self.now += timedelta(minutes=1)
        if self._half_life is not None:
            held = slots_by_share(self.held.values())
            self.past_use = {
                path: decayed(self.past_use.get(path, 0.0), timedelta(minutes=1), self._half_life, held=held[path])
                for path in {*self.past_use, *held}
            }
        self.came_back = {}
        for one in [one for one in self.held.values() if one.leaving]:
            del self.held[one.allocation]
            self._come_back(one)
        self.held = {name: one for name, one in self.held.items() if one.started_at > self.now - self._takes}
        return self.plan_again()

    def plan_again(self) -> Plan:
        """Carry out another plan at the same moment, when nobody has left yet."""
        made = plan(self.snapshot)
        self._carry_out(made)
        return made

    def _come_back(self, one: HeldAllocation) -> None:
        self._count += 1
        pods = tuple(slots for _, slots in one.pods)
        name = self._request(
            one.job,
            pods,
            priority=one.priority,
            preemptible=one.preemptible,
            submitted_at=one.submitted_at,
            share=one.share,
            topology=one.topology,
        )
        if (places := self._moving.pop(one.allocation, None)) is not None:
            self.came_back[name] = places
            self.preempted[name] = self.preempted[one.allocation]
            self.pending[-1] = msgspec.structs.replace(
                self.pending[-1], preempted=self.preempted[name], nominated=places, moved=True
            )
            return
        self.preempted[name] = self.preempted[one.allocation] + 1
        self.pending[-1] = msgspec.structs.replace(self.pending[-1], preempted=self.preempted[name])

    def _request(
        self,
        job: str,
        pods: tuple[int, ...],
        *,
        priority: int,
        preemptible: bool,
        submitted_at: datetime,
        share: str,
        topology: TopologyRequest | None,
    ) -> str:
        name = f"{job}.{self._count}"
        self.pending.append(
            PendingAllocation(
                allocation=name,
                job=job,
                pods=pods,
                priority=priority,
                submitted_at=submitted_at,
                requested_at=self.now,
                preemptible=preemptible,
                share=share,
                topology=topology,
            )
        )
        return name

    def _carry_out(self, made: Plan) -> None:
        for gone in made.preempted:
            self.held[gone.allocation] = msgspec.structs.replace(self.held[gone.allocation], leaving=True)
        for one in made.moved:
            self.held[one.allocation] = msgspec.structs.replace(self.held[one.allocation], leaving=True)
            self._moving[one.allocation] = one.placements
            self.moved_at.append(self.now)
        starts = {start.allocation: start.placements for start in made.starts}
        after = {request.allocation: request for request in remembered(made, self.pending)}
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
                    preemptible=request.preemptible,
                    share=request.share,
                    movable=request.preemptible,
                    started_at=self.now,
                    topology=request.topology,
                )
                continue
            left.append(after.get(name, request))
        self.pending = left
