"""The planner of a pool, as the scheduler runs it. This is the only place where the simulator meets it.

The planner gets what it gets from the scheduler: nodes, who holds what, and who waits. It knows no models of GPU, so a
job that needs one has all other nodes excluded, as by a log policy. Who was asked to leave has left at once, and comes
back to the queue with the next event, as a task does that has to save its state first. What a plan leaves to do is left
to the next event, too: there are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.planner import plan
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import (
    HeldAllocation,
    NodeSlots,
    PendingAllocation,
    PoolPolicy,
    PoolSnapshot,
    SlotLimit,
)
from tests.load.simulate.cluster import SimulatedNode
from tests.load.simulate.engine.decisions import Begin, Evict, PolicyDecision
from tests.load.simulate.engine.state import ClusterState, RunningJob
from tests.load.simulate.traces.job import Job

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class _Left(NamedTuple):
    at_s: float
    times: int
    """How often it has been evicted."""


class Resolute:
    """The planner with ``policy``. What jobs are expected to take, from their users' past, is what it is told that they
    take at most."""

    def __init__(self, policy: PoolPolicy, *, most_slots: Mapping[str, int] | None = None) -> None:
        """``most_slots``: how many slots some users may hold at once."""
        self._policy = policy
        self._limits = {user: SlotLimit(holder=f"user {user}", most=most) for user, most in (most_slots or {}).items()}
        self._nodes: tuple[NodeSlots, ...] = ()
        self._excluded: dict[frozenset[str], frozenset[str]] = {}
        self._pending: dict[int, PendingAllocation] = {}
        self._held: dict[int, HeldAllocation] = {}
        self._leaving: set[int] = set()
        self._left: dict[int, _Left] = {}
        """Those that wait again."""

    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        if not self._nodes:
            self._nodes = tuple(
                NodeSlots(name=_name(index), slots=node.slots, max_aux=0) for index, node in enumerate(state.nodes)
            )
        self._leaving &= state.running.keys()
        made = plan(self._snapshot(state, now), settles=False)
        self._remember(made)
        for start in made.starts:
            yield Begin(int(start.allocation), tuple(int(placement.node) for placement in start.placements))
        for number in sorted(self._leaving):
            before = self._left.get(number)
            self._left[number] = _Left(now, 1 if before is None else before.times + 1)
            yield Evict(number)

    def _remember(self, made: Plan) -> None:
        """What the scheduler keeps of a plan for the plans after it."""
        self._leaving |= {int(one.allocation) for one in made.preempted}
        after = {int(request.allocation): request for request in remembered(made, self._pending.values())}
        self._pending.update(after)

    def _snapshot(self, state: ClusterState, now: float) -> PoolSnapshot:
        """Structs of jobs that wait or run on are those of the plan before."""
        known = self._pending
        self._pending = {
            job.number: known.get(job.number) or self._pending_of(job, state)
            for job in state.waiting
            if job.number not in self._left or self._left[job.number].at_s < now
        }
        self._held = {number: self._held_of(one, now) for number, one in state.running.items()}
        return PoolSnapshot(
            nodes=self._nodes,
            held=tuple(self._held.values()),
            pending=tuple(self._pending.values()),
            limits=self._limits,
            policy=self._policy,
            now=_instant(now),
        )

    def _held_of(self, running: RunningJob, now: float) -> HeldAllocation:
        job = running.job
        known = self._held.get(job.number)
        ends_at, leaving = _instant(running.expected_end_s(now)), job.number in self._leaving
        if known is not None and (known.ends_at, known.leaving) == (ends_at, leaving):
            return known
        name = _name(job.number)
        return HeldAllocation(
            allocation=name,
            job=name,
            share=job.user,
            limits=self._limits_of(job),
            pods=tuple((_name(node), job.slots_per_pod) for node in running.nodes),
            priority=job.priority,
            submitted_at=_instant(job.submitted_s),
            requested_at=_instant(job.submitted_s),
            preemptible=True,
            leaving=leaving,
            started_at=_instant(running.started_s),
            ends_at=ends_at,
        )

    def _pending_of(self, job: Job, state: ClusterState) -> PendingAllocation:
        left_s = max(state.estimate_s[job.number] - state.done_s.get(job.number, 0.0), 1.0)
        left = self._left.get(job.number, _Left(job.submitted_s, 0))
        return PendingAllocation(
            allocation=_name(job.number),
            job=_name(job.number),
            share=job.user,
            limits=self._limits_of(job),
            pods=(job.slots_per_pod,) * job.pods,
            priority=job.priority,
            submitted_at=_instant(job.submitted_s),
            requested_at=_instant(left.at_s),
            preempted=left.times,
            blocked_nodes=self._excluded_by(job.models, state.nodes),
            preemptible=True,
            runs_for=timedelta(seconds=left_s),
            expected=timedelta(seconds=left_s),
        )

    def _limits_of(self, job: Job) -> tuple[str, ...]:
        return (job.user,) if job.user in self._limits else ()

    def _excluded_by(self, models: frozenset[str], nodes: Sequence[SimulatedNode]) -> frozenset[str]:
        """Nodes that have none of the models that will do."""
        if models not in self._excluded:
            self._excluded[models] = frozenset(
                _name(index) for index, node in enumerate(nodes) if models and node.model not in models
            )
        return self._excluded[models]


def _instant(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def _name(number: int) -> str:
    """Names sort as their numbers do, and are read back by ``int``."""
    return f"{number:08}"
