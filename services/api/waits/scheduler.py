"""Waits until the scheduler has acted: clients look for the effect of a request as soon as it is answered.

What can be done in the transaction of the request is done there. This is about the rest: requests for slots that
appear in the queue, trials without any that end at once, and experiments that end with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from libs.bus import Bus
from libs.errors import Unavailable
from libs.events import subjects
from libs.events.reconcile_requests import ReconcileRequest

LONGEST_S: Final = 2.0
"""A scheduler that is busy, or is being replaced, is no reason to keep a client waiting: what was asked is stored."""

log = structlog.get_logger()


async def wait_until_reconciled(
    bus: Bus,
    *experiment_ids: int,
    allocations: Sequence[str] = (),
    generic_tasks: Sequence[str] = (),
    created_until: int = 0,
) -> None:
    """Return when the scheduler has reconciled them as they are committed, or after ``LONGEST_S``.

    Without a scheduler that listens it returns at once. ``created_until`` is as in the request.
    """
    objects = len(experiment_ids) + len(allocations) + len(generic_tasks)
    if not objects:
        return
    request = ReconcileRequest(
        experiments=experiment_ids,
        allocations=tuple(allocations),
        generic_tasks=tuple(generic_tasks),
        created_until=created_until,
    )
    try:
        await bus.request(subjects.RECONCILE, msgspec.json.encode(request), timeout_s=LONGEST_S)
    except Unavailable as error:
        log.info("scheduler.not_reconciled_in_time", objects=objects, error=str(error))
