"""Finds out by its columns what form a file has, and reads it."""

from __future__ import annotations

from pathlib import Path

from tests.load.simulate.traces.intervals import COLUMNS, read_intervals
from tests.load.simulate.traces.job import Trace
from tests.load.simulate.traces.openb import POD_COLUMNS, read_openb
from tests.load.simulate.traces.rows import header


def read_trace(path: Path, *, nodes: Path | None = None) -> Trace:
    """Reads ``path``, a CSV file that may be compressed with gzip.

    nodes  the nodes of the traced cluster, for forms that keep them in a file of their own
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
    if not trace.span_s:
        raise ValueError(f"{path.name} has fewer than two submissions of jobs with GPUs")
    return trace
