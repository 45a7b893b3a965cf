"""Rows of trials that are moved: each keeps the places of a task from when it is asked to leave until it has started
there, as another allocation. How many were moved within the hour is counted from them, too, so that neither is lost
with whoever plans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.decisions import Move, Plan
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, Placement
from services.scheduler.transactions.rows import AllocationRow

PER: Final = timedelta(hours=1)
"""What ``moves_per_hour`` is counted in."""
COMES_BACK_WITHIN: Final = timedelta(minutes=5)
"""After its end a trial asks for slots again, once its log is there; or never, if it was done or is stopped."""
_REMEMBERED: Final = timedelta(days=1)
_COUNT: Final = PreparedStatement(
    "SELECT count(*) AS moved FROM consolidation_moves WHERE pool = :pool AND moved_at > :since"
)
# What asks for slots after it was moved is the next allocation of its task.
_OPEN: Final = PreparedStatement("""
    SELECT m.id, m.places AS kept, m.made_room_for,
           a.allocation_id, a.job_id, a.task_id, t.task_type, a.slots, a.num_pods, a.namespace, a.pool,
           a.preemptible, a.requested_at, a.assigned_at, a.start_time, a.released_at, a.time_limit_s, a.ran_before_s,
           coalesce(j.submitted_at, a.requested_at) AS submitted_at, j.priority, j.max_slots, j.owner_id,
           j.workspace_id, j.weight, j.queue_position,
           n.allocation_id AS returned, n.pool = m.pool AND n.assigned_at IS NULL AND n.released_at IS NULL AS waits
    FROM consolidation_moves m
    JOIN allocations a ON a.allocation_id = m.allocation_id
    LEFT JOIN tasks t ON t.task_id = a.task_id
    LEFT JOIN jobs j ON j.job_id = a.job_id
    LEFT JOIN LATERAL (
        SELECT allocation_id, pool, assigned_at, released_at FROM allocations
        WHERE task_id = m.task_id AND requested_at > m.moved_at ORDER BY requested_at LIMIT 1
    ) n ON true
    WHERE m.pool = :pool AND m.settled_at IS NULL
    ORDER BY m.id
""")
_NAMES: Final = PreparedStatement("SELECT allocation_id, name FROM allocations WHERE allocation_id = ANY(:wanted)")
_WRITE: Final = PreparedStatement("""
    INSERT INTO consolidation_moves (pool, task_id, allocation_id, made_room_for, places, moved_at)
    SELECT :pool, task_id, allocation_id, made_room_for, places, :now
    FROM jsonb_to_recordset(:moves::jsonb) AS m(task_id text, allocation_id text, made_room_for text, places jsonb)
""")
_SETTLE: Final = PreparedStatement("UPDATE consolidation_moves SET settled_at = :now WHERE id = ANY(:ids)")
_FORGET: Final = PreparedStatement("""
    DELETE FROM consolidation_moves WHERE pool = :pool AND moved_at < :before AND settled_at IS NOT NULL
""")

Row = Mapping[Any, Any]


class OpenMoves(Struct, frozen=True):
    """What a plan has to know. Nothing where a pool moves nothing."""

    left: int = 0
    """Trials that may be moved now."""
    places: Mapping[str, tuple[Placement, ...]] = {}
    """Kept for allocations that wait."""
    moving: tuple[HeldAllocation, ...] = ()
    """Places of those that have not left yet."""
    returning: Sequence[Row] = ()
    """Those that have left, and have not asked for slots yet: they hold their places."""
    ids: Mapping[str, int] = {}
    """Of the rows of ``places``."""
    made_room_for: Mapping[str, str] = {}
    """By the allocations of ``places``."""
    over: Sequence[int] = ()
    """Rows of those that have started again, or will not."""


NO_MOVES: Final = OpenMoves()


async def load_moves(
    connection: Connection, pool: str, *, per_hour: int, pending: Collection[str], now: datetime
) -> OpenMoves:
    """The moves of ``pool``, which allows so many.

    pending  allocations that the plan knows of. One that has asked for slots since they were read is not among them:
             until the next plan, its places are held for it as if it had not asked yet.
    """
    if not per_hour:
        return NO_MOVES
    [counted] = await _COUNT.rows(connection, pool=pool, since=now - PER)
    waiting: dict[str, Row] = {}
    moving: list[HeldAllocation] = []
    returning: list[Row] = []
    over: list[int] = []
    for row in await _OPEN.rows(connection, pool=pool):
        if row["waits"] and row["returned"] in pending:
            waiting[row["returned"]] = row
        elif row["returned"] is not None and not row["waits"]:
            over.append(row["id"])
        elif row["released_at"] is None:
            moving.append(_kept_of(row))
        elif row["released_at"] > now - COMES_BACK_WITHIN:
            returning.append({**row, **_AS_HELD, "places": row["kept"]})
        else:
            over.append(row["id"])
    return OpenMoves(
        left=max(per_hour - counted["moved"], 0),
        places={name: placements_of(row["kept"]) for name, row in waiting.items()},
        moving=tuple(moving),
        returning=returning,
        ids={name: row["id"] for name, row in waiting.items()},
        made_room_for={name: row["made_room_for"] for name, row in waiting.items()},
        over=over,
    )


_AS_HELD: Final[Mapping[str, object]] = {
    "pods": [],
    "preemptible": False,
    "leaving": False,
    "saved_at": None,
    "blocked_nodes": [],
    "is_ready": False,
    "has_several_queues": False,
    "preemption_timeout_s": 0,
}


def placements_of(kept: object) -> tuple[Placement, ...]:
    return msgspec.convert(kept, tuple[Placement, ...])


def _kept_of(row: Row) -> HeldAllocation:
    pods = tuple((place.node, place.slots) for place in placements_of(row["kept"]))
    return HeldAllocation(allocation=row["allocation_id"], job=row["job_id"], pods=pods)


def kept_from(moves: OpenMoves, allocation: str, pending: Iterable[PendingAllocation]) -> list[str]:
    """Nodes on which the pods of an allocation that was moved would take the places of whom it was moved for: that one
    may wait for others to leave, or may have been given them in the same plan."""
    head = moves.made_room_for.get(allocation)
    if head is None:
        return []
    own = {place.node for place in moves.places[allocation]}
    theirs = {place.node for one in pending if one.allocation == head for place in one.nominated}
    return sorted(theirs - own)


async def names_of(connection: Connection, allocations: Collection[str]) -> Mapping[str, str]:
    """What tasks are called, by allocation."""
    if not allocations:
        return {}
    rows = await _NAMES.rows(connection, wanted=sorted(allocations))
    return {row["allocation_id"]: row["name"] for row in rows}


async def write_moves(
    connection: Connection,
    pool: str,
    moves: Sequence[Move],
    rows: Iterable[AllocationRow],
    *,
    before: OpenMoves,
    made: Plan,
    now: datetime,
) -> None:
    """Keep the places of ``moves``, and no longer those of which the plan has found that they cannot be had.

    rows  of those that were asked to leave; who has ended meanwhile is not moved
    """
    tasks = {row.allocation_id: row.task_id for row in rows}
    wanted = [
        {
            "task_id": tasks[one.allocation],
            "allocation_id": one.allocation,
            "made_room_for": one.makes_room_for,
            "places": one.placements,
        }
        for one in moves
        if one.allocation in tasks
    ]
    if wanted:
        await _WRITE.rows(connection, pool=pool, moves=msgspec.json.encode(wanted).decode(), now=now)
        await _FORGET.rows(connection, pool=pool, before=now - _REMEMBERED)
    over = {*before.over, *(before.ids[one.allocation] for one in made.nominated if one.allocation in before.ids)}
    if over:
        await _SETTLE.rows(connection, ids=sorted(over), now=now)
