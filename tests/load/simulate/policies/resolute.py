"""The planner of a pool, as the scheduler runs it. This is the only place where the simulator meets it.

The planner gets what it gets from the scheduler: nodes, who holds what, and who waits. It knows no models of GPU, so a
job that needs one has all other nodes excluded, as by a log policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from services.scheduler.plan.decisions import Start
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolSnapshot
from tests.load.simulate.cluster import SimulatedNode
from tests.load.simulate.engine.decisions import Begin, PolicyDecision
from tests.load.simulate.engine.state import ClusterState, RunningJob
from tests.load.simulate.traces.job import Job

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Resolute:
    def __init__(self) -> None:
        self._nodes: tuple[NodeSlots, ...] = ()
        self._excluded: dict[frozenset[str], frozenset[str]] = {}
        self._pending: dict[int, PendingAllocation] = {}
        self._held: dict[int, HeldAllocation] = {}

    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        if not self._nodes:
            self._nodes = tuple(
                NodeSlots(name=_name(index), slots=node.slots, max_aux=0) for index, node in enumerate(state.nodes)
            )
        for decision in plan(self._snapshot(state)):
            if isinstance(decision, Start):
                number = int(decision.allocation)
                yield Begin(number, tuple(int(placement.node) for placement in decision.placements))

    def _snapshot(self, state: ClusterState) -> PoolSnapshot:
        """Structs of jobs that wait or run on are those of the plan before."""
        known_pending, known_held = self._pending, self._held
        self._pending = {
            job.number: known_pending.get(job.number) or self._pending_of(job, state.nodes) for job in state.waiting
        }
        self._held = {number: known_held.get(number) or _held_of(one) for number, one in state.running.items()}
        return PoolSnapshot(nodes=self._nodes, held=tuple(self._held.values()), pending=tuple(self._pending.values()))

    def _pending_of(self, job: Job, nodes: Sequence[SimulatedNode]) -> PendingAllocation:
        submitted_at = EPOCH + timedelta(seconds=job.submitted_s)
        return PendingAllocation(
            allocation=_name(job.number),
            job=_name(job.number),
            pods=(job.slots_per_pod,) * job.pods,
            priority=job.priority,
            submitted_at=submitted_at,
            requested_at=submitted_at,
            blocked_nodes=self._excluded_by(job.models, nodes),
        )

    def _excluded_by(self, models: frozenset[str], nodes: Sequence[SimulatedNode]) -> frozenset[str]:
        """Nodes that have none of the models that will do."""
        if models not in self._excluded:
            self._excluded[models] = frozenset(
                _name(index) for index, node in enumerate(nodes) if models and node.model not in models
            )
        return self._excluded[models]


def _held_of(running: RunningJob) -> HeldAllocation:
    name = _name(running.job.number)
    pods = tuple((_name(node), running.job.slots_per_pod) for node in running.nodes)
    return HeldAllocation(allocation=name, job=name, pods=pods)


def _name(number: int) -> str:
    """Names sort as their numbers do, and are read back by ``int``."""
    return f"{number:08}"
