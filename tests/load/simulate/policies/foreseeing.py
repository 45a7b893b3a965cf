"""The planner of a pool, which also foresees starts as the scheduler does for ``estimatedStart``: by playing the queue
forward, where each job runs as long as is estimated and nobody new comes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from services.scheduler.plan.forecast.replay import Replay
from services.scheduler.plan.snapshot import PoolPolicy, PoolSnapshot
from tests.load.simulate.engine.decisions import Foresee, PolicyDecision
from tests.load.simulate.engine.state import ClusterState
from tests.load.simulate.policies.resolute import EPOCH, Resolute

MOST_STEPS = 2000
"""Plans of one look into the future; a queue for which that is not enough is not foreseen."""


class Foreseeing(Resolute):
    def __init__(self, policy: PoolPolicy, *, every: int) -> None:
        """every  of so many jobs the start of one is foreseen, unless it starts when it is submitted"""
        super().__init__(policy)
        self._every = every
        self._next = 0
        """Number of the first job that has not been looked at."""

    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        yield from super().plan(state, now)
        new = [job.number for job in state.waiting if job.number >= self._next]
        self._next = max(new, default=self._next - 1) + 1
        wanted = {f"{number:08}" for number in new if number % self._every == 0}
        if wanted:
            yield from self._foresee(self._snapshot(state, now), wanted)

    def _foresee(self, snapshot: PoolSnapshot, wanted: set[str]) -> Iterator[PolicyDecision]:
        replay = Replay(
            snapshot,
            lengths={one.allocation: one.expected for one in snapshot.pending if one.expected is not None},
            ends={one.allocation: one.ends_at for one in snapshot.held if one.ends_at is not None},
            otherwise=timedelta(hours=1),
            settles=False,
        )
        for _ in range(MOST_STEPS):
            if not replay.step() or wanted <= replay.starts.keys():
                break
        for name in sorted(wanted & replay.starts.keys()):
            yield Foresee(int(name), (replay.starts[name].at - EPOCH).total_seconds())
