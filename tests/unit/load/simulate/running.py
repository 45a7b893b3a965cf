"""Small workloads for tests, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tests.load.simulate.cluster import SimulatedNode, Workload
from tests.load.simulate.engine.outcome import Outcome
from tests.load.simulate.engine.simulation import Policy, simulate
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.traces.job import Job, Trace


def job(number: int, submitted_s: float, run_s: float, pods: int = 1, slots: int = 1, **fields: object) -> Job:
    one = Job(number=number, user="ann", submitted_s=submitted_s, run_s=run_s, pods=pods, slots_per_pod=slots)
    return replace(one, **fields)


def run(policy: str | Policy, jobs: Sequence[Job], nodes: Sequence[int] = (2, 2)) -> Outcome:
    workload = Workload(
        trace=Trace(name="tiny", jobs=tuple(jobs)), nodes=tuple(SimulatedNode(slots=slots) for slots in nodes)
    )
    return simulate("test", POLICIES[policy].make() if isinstance(policy, str) else policy, workload)


def starts(outcome: Outcome) -> list[float | None]:
    return [one.started_s for one in outcome.jobs]
