"""In which order requests pass the first of their level that has no room: who has waited longest, measured by how long
they run, comes first.

The measure is the expansion factor, (wait + run time) / run time, which "shortest job first" and "first come, first
served" are the two ends of: work of minutes does not wait for hours behind work of days, and work of days comes first
once it has waited for days. Source: the slowdown that it keeps small is that of D. G. Feitelson, Metrics for parallel
job scheduling and their convergence, JSSPP 2001.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from services.scheduler.plan.snapshot import PendingAllocation

UNKNOWN_RUN: Final = timedelta(hours=1)
"""Of what nothing is expected."""
_SECOND: Final = timedelta(seconds=1)


def magnitude(request: PendingAllocation) -> int:
    """Its run time as a power of two, in seconds: expectations are no better than that, and requests of one magnitude
    can be looked at as one."""
    run, most = request.expected, request.runs_for
    if run is None or (most is not None and most < run):
        run = most or UNKNOWN_RUN
    return (run // _SECOND).bit_length()


def expansion(request: PendingAllocation, position: datetime, now: datetime) -> float:
    """The factor if it started now and its job has waited since ``position``, where its rank puts it: requests of one
    magnitude pass in the order of their ranks."""
    run_s = 0.75 * 2.0 ** magnitude(request)
    waited_s = max((now - position).total_seconds(), 0.0)
    return (waited_s + run_s) / run_s
