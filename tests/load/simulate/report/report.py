"""Report of several policies on one workload: what was simulated, and the measures of each policy."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tests.load.simulate.cluster import Workload
from tests.load.simulate.report.measures import Measures


class Report(Struct, frozen=True, kw_only=True):
    trace: str
    jobs: int
    jobs_left_out: int
    """Of the sparse beginning of the source."""
    jobs_without_gpus: int
    jobs_that_never_ran: int
    """In the source."""
    span_s: float
    nodes: int
    slots: int
    load: float
    """Offered while measures were taken."""
    speedup: float
    policies: tuple[Measures, ...]


def report_of(workload: Workload, measures: Sequence[Measures]) -> Report:
    trace = workload.trace
    return Report(
        trace=trace.name,
        jobs=len(trace.jobs),
        jobs_left_out=trace.left_out,
        jobs_without_gpus=trace.without_gpus,
        jobs_that_never_ran=trace.never_ran,
        span_s=trace.span_s,
        nodes=len(workload.nodes),
        slots=workload.slots,
        load=workload.load,
        speedup=workload.speedup,
        policies=tuple(measures),
    )
