"""What a plan remembers of pending allocations for the plans after it: since when one is blocked, how many have passed
it, and which places others were asked to leave for it. Whoever plans the pool next, after a restart too, goes on from
there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import PendingAllocation, Placement

_WRITE: Final = PreparedStatement("""
    INSERT INTO queue_states (pool, allocation_id, blocked_at, overtaken, nominated)
    SELECT :pool, allocation_id, blocked_at, overtaken, nominated
    FROM jsonb_to_recordset(:states::jsonb)
         AS s(allocation_id text, blocked_at timestamptz, overtaken integer, nominated jsonb)
    ON CONFLICT (pool, allocation_id) DO UPDATE
    SET blocked_at = excluded.blocked_at, overtaken = excluded.overtaken, nominated = excluded.nominated
""")
_FORGET: Final = PreparedStatement("""
    DELETE FROM queue_states q WHERE q.pool = :pool AND NOT EXISTS (
        SELECT FROM allocations a
        WHERE a.allocation_id = q.allocation_id AND a.released_at IS NULL AND a.assigned_at IS NULL
    )
""")


class QueueState(Struct, frozen=True, kw_only=True):
    blocked_at: datetime | None = None
    overtaken: int = 0
    nominated: tuple[Placement, ...] = ()


def states_after(plan: Plan, pending: Sequence[PendingAllocation]) -> dict[str, QueueState]:
    """The states that ``plan`` changes, by allocation."""
    after = {request.allocation: _state_of(request) for request in remembered(plan, pending)}
    before = {request.allocation: _state_of(request) for request in pending if request.allocation in after}
    return {allocation: state for allocation, state in after.items() if state != before[allocation]}


def nominated_after(plan: Plan, pending: Iterable[PendingAllocation]) -> set[str]:
    """Allocations that wait for places which others were asked to leave for them."""
    found = {request.allocation for request in pending if request.nominated}
    for one in plan.nominated:
        (found.add if one.placements else found.discard)(one.allocation)
    return found - {start.allocation for start in plan.starts}


async def write_states(
    connection: Connection, pool: str, states: Mapping[str, QueueState], pending: Iterable[PendingAllocation]
) -> None:
    """Remember ``states``, and forget those of allocations that do not wait any more; ``pending`` did before."""
    if states:
        rows = [{"allocation_id": name, **msgspec.structs.asdict(state)} for name, state in states.items()]
        await _WRITE.rows(connection, pool=pool, states=msgspec.json.encode(rows).decode())
    if states or any(request.blocked_at is not None or request.nominated for request in pending):
        await _FORGET.rows(connection, pool=pool)


def _state_of(request: PendingAllocation) -> QueueState:
    return QueueState(blocked_at=request.blocked_at, overtaken=request.overtaken, nominated=request.nominated)
