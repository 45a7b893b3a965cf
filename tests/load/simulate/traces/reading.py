"""Finds out by its columns what form a file has, and reads it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.load.simulate.traces.intervals import COLUMNS, read_intervals
from tests.load.simulate.traces.job import Trace
from tests.load.simulate.traces.openb import POD_COLUMNS, read_openb
from tests.load.simulate.traces.rows import header

SPARSE_BEGINNING = 0.05


def read_trace(path: Path, *, nodes: Path | None = None, leave_out: float = SPARSE_BEGINNING) -> Trace:
    """Reads ``path``, a CSV file that may be compressed with gzip.

    nodes      the nodes of the traced cluster, for forms that keep them in a file of their own
    leave_out  the share of the jobs with which the trace does not begin: published traces begin long before they are
               complete, with jobs that happened to run on, and an empty cluster has no queue
    Raises ValueError for a form that is not known, a missing file of nodes, or a trace without jobs.
    """
    columns = header(path)
    name = path.name.partition(".")[0]
    if columns >= COLUMNS:
        trace = read_intervals(path, name)
    elif columns >= POD_COLUMNS:
        if nodes is None:
            raise ValueError(f"{path.name} lists pods: their nodes are in another file, which --nodes names")
        trace = read_openb(path, nodes, name)
    else:
        raise ValueError(f"{path.name} has the columns of no known trace: {', '.join(sorted(columns))}")
    trace = without_beginning(trace, leave_out)
    if not trace.span_s:
        raise ValueError(f"{path.name} has fewer than two submissions of jobs with GPUs")
    return trace


def without_beginning(trace: Trace, share: float) -> Trace:
    """The trace without the first ``share`` of its jobs."""
    left_out = int(len(trace.jobs) * share)
    kept = trace.jobs[left_out:]
    jobs = tuple(
        replace(job, number=number, submitted_s=job.submitted_s - kept[0].submitted_s)
        for number, job in enumerate(kept)
    )
    return replace(trace, jobs=jobs, left_out=left_out)
