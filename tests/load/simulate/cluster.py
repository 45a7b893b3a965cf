"""Chooses the nodes on which a trace offers the load that is asked for.

The load that is offered is the mean number of slots that would be busy, while measures are taken, if every job started
at once, as a share of all slots. The cluster has the kinds of nodes of the traced one in the same proportions. Where
the smallest such cluster is too large for the load, submissions follow each other faster instead, all by one factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tests.load.simulate.traces.job import Job, NodeKind, Trace

FASTEST = 1e6
HALVINGS = 20


class SimulatedNode(Struct, frozen=True):
    slots: int
    model: str = ""


class Workload(Struct, frozen=True, kw_only=True):
    """A trace and the nodes it runs on."""

    trace: Trace
    nodes: tuple[SimulatedNode, ...]
    speedup: float = 1.0
    """By how much submissions follow each other faster than in the source."""

    @property
    def slots(self) -> int:
        return sum(node.slots for node in self.nodes)

    @property
    def load(self) -> float:
        """What is really offered; nodes are whole, so it is near what was asked for."""
        return self.trace.mean_slots / self.slots


def workload(trace: Trace, load: float) -> Workload:
    """Raises ValueError when a job fits on no number of nodes of the trace's kinds."""
    wanted = trace.mean_slots / load
    shares = _proportions(trace.kinds, wanted)
    nodes = _nodes(trace.kinds, shares)
    for job in trace.jobs:
        _refuse_if_too_large(job, trace.kinds)
        while not could_run(job, nodes):
            shares = [count + 1 for count in shares]
            nodes = _nodes(trace.kinds, shares)
    slots = sum(node.slots for node in nodes)
    largest = max(kind.slots for kind in trace.kinds)
    if slots - wanted <= largest:
        return Workload(trace=trace, nodes=nodes)
    speedup = _speedup(trace, load * slots)
    return Workload(trace=_faster(trace, speedup), nodes=nodes, speedup=speedup)


def could_run(job: Job, nodes: Sequence[SimulatedNode]) -> bool:
    """Whether ``job`` fits when nothing else runs."""
    fitting = (node.slots // job.slots_per_pod for node in nodes if not job.models or node.model in job.models)
    return sum(fitting) >= job.pods


def _proportions(kinds: Sequence[NodeKind], wanted: float) -> list[int]:
    traced = sum(kind.slots * kind.count for kind in kinds)
    return [max(1, round(kind.count * wanted / traced)) for kind in kinds]


def _nodes(kinds: Sequence[NodeKind], counts: Sequence[int]) -> tuple[SimulatedNode, ...]:
    return tuple(
        SimulatedNode(slots=kind.slots, model=kind.model)
        for kind, count in zip(kinds, counts, strict=True)
        for _ in range(count)
    )


def _refuse_if_too_large(job: Job, kinds: Sequence[NodeKind]) -> None:
    if not any(kind.slots >= job.slots_per_pod and (not job.models or kind.model in job.models) for kind in kinds):
        raise ValueError(
            f"job {job.number} needs {job.slots_per_pod} slots on one node"
            + (f" with {' or '.join(sorted(job.models))}" if job.models else "")
            + "; no node of the traced cluster has them"
        )


def _speedup(trace: Trace, wanted: float) -> float:
    """The factor with which the trace would keep ``wanted`` slots busy, by halving an interval.

    Raises ValueError when it would not even if all its jobs were submitted nearly at once.
    """
    low = high = 1.0
    while _faster(trace, high).mean_slots < wanted:
        low, high = high, high * 2
        if high > FASTEST:
            raise ValueError(f"{trace.name} cannot keep {wanted:.0f} slots busy, however fast its jobs are submitted")
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _faster(trace, middle).mean_slots < wanted else (low, middle)
    return high


def _faster(trace: Trace, speedup: float) -> Trace:
    jobs = tuple(msgspec.structs.replace(job, submitted_s=job.submitted_s / speedup) for job in trace.jobs)
    return msgspec.structs.replace(trace, jobs=jobs)
