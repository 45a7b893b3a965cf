"""First in, first out, without backfill: whoever has no room keeps everybody behind from starting."""

from __future__ import annotations

from collections.abc import Iterator

from tests.load.simulate.engine.decisions import Begin, PolicyDecision
from tests.load.simulate.engine.state import ClusterState


class Fifo:
    """More important jobs are ahead of others; within a priority, the one that was submitted first."""

    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        while (job := state.waiting.first()) is not None:
            nodes = state.free.fullest(job.shape)
            if nodes is None:
                return
            yield Begin(job.number, nodes)
