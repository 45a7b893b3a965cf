"""The state that users see: that of the row, with ACTIVE refined to what the allocations are doing.

Source: docs/reference/experiments.md 5.1 (displayed state).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection
from libs.db.tables.tasks import allocations
from libs.states.allocation import AllocationState, shown_as
from services.api.queries.prepared import PreparedQuery, one_of_given

ACTIVE = "ACTIVE"


async def live_states_by_job(
    connection: AsyncConnection | DriverConnection, job_ids: Sequence[str]
) -> Mapping[str, tuple[AllocationState, ...]]:
    """Job id -> states of those of its allocations that hold or want slots; jobs without any are absent."""
    if not job_ids:
        return {}
    rows = await _LIVE.rows(connection, jobs=list(job_ids))
    return _grouped((row.job_id, row.state) for row in rows)


_LIVE: Final = PreparedQuery(
    select(allocations.c.job_id, allocations.c.state).where(
        one_of_given(allocations.c.job_id, "jobs"), allocations.c.released_at.is_(None)
    )
)


def displayed(state: str, live: Iterable[AllocationState]) -> str:
    """The state itself, or what the live allocations make of ACTIVE."""
    return shown_as(live) if state == ACTIVE else state


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[AllocationState, ...]]:
    states: dict[str, list[AllocationState]] = defaultdict(list)
    for key, state in pairs:
        states[key].append(AllocationState(state))
    return {key: tuple(values) for key, values in states.items()}
