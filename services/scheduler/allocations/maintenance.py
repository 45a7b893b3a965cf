"""When an allocation has to leave because of maintenance. Pure.

What ends by its own time limit before a window begins is left alone until then. What can be asked to leave is asked so
long before that it has its ``preemption_timeout``; what cannot is killed when the window begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from libs.maintenance.windows import MaintenanceWindow
from services.scheduler.allocations.pod_nodes import is_on, nodes_of_pods
from services.scheduler.allocations.time_limits import ends_at
from services.scheduler.transactions.rows import AllocationRow

CHECK_S: Final = 5.0
"""How often it is looked who has to leave; who can be asked is asked so much earlier."""


def reason_to_leave(
    row: AllocationRow, windows: Iterable[MaintenanceWindow], *, now: datetime, plan_binds: bool
) -> str | None:
    """Which maintenance it has to leave for now, in words; None when there is none.

    plan_binds  as in ``is_on``
    """
    for window in windows:
        is_there = row.pool == window.pool if window.pool else is_on(row, window.nodes, plan_binds=plan_binds)
        if is_there and window.ends_at > now and window.starts_at - now <= _notice(row, window):
            places = row.places if plan_binds else ()
            on = nodes_of_pods(num_pods=row.num_pods, pods=row.pods, places=places)
            return window.sentence_of({node for node in on if node in window.nodes})
    return None


def _notice(row: AllocationRow, window: MaintenanceWindow) -> timedelta:
    """How long before the beginning it has to leave. It is compared with what is left until then: the difference of two
    moments is always there, while that of a moment and a span may be before the first year."""
    end = ends_at(row)
    if (end is not None and end <= window.starts_at) or not _can_be_asked(row):
        return timedelta()
    return timedelta(seconds=row.preemption_timeout_s + CHECK_S)


def _can_be_asked(row: AllocationRow) -> bool:
    return row.preemptible and row.is_ready and row.preemption_timeout_s > 0
