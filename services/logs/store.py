"""One batch, one transaction: what is new of it goes into ``task_logs``, and how far its streams have come beside it.

The lock of the shard is held from the first statement to the commit, so ids of a task grow in the order of commits
whoever writes, and a reader's cursor never leaves a line behind (spec/logs.md 4.5, 13.9).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import text

from libs.db.engine import Database, driver_connection
from libs.db.tables.logs import SHARD_LOCK
from libs.events.logs import LogBatch, LogLine
from services.logs.lines.arrival import Arrival, Position, arrive, extent
from services.logs.lines.copying import COLUMNS, SIGNATURE, TRAILER, rows_of
from services.logs.lines.rows import in_order_of_time
from services.logs.policies import LogPolicies

_DECODER = msgspec.msgpack.Decoder(LogBatch)


class Stored(Struct, frozen=True, kw_only=True):
    """What a transaction has changed."""

    lines_by_task: Mapping[str, int]
    """Tasks with news: lines, or the end of a stream."""
    parked: int
    """Batches that wait for others, in the streams that were touched."""
    given_up: int
    """Gaps that were not waited for any longer."""


async def store(
    db: Database, shard: int, batches: Sequence[LogBatch], *, park_s: float, policies: LogPolicies | None = None
) -> Stored:
    """Store batches of tasks of one shard, in the order of delivery; repeating any of it changes nothing.

    park_s  how long a batch waits for lines before it
    policies  told of every line that is new

    Without batches, only what has waited long enough is stored.
    """
    async with db.transaction() as connection:
        await connection.execute(
            text("SELECT pg_advisory_xact_lock(:space, :shard)"), {"space": SHARD_LOCK, "shard": shard}
        )
        driver = await driver_connection(connection)
        # Read after the lock was granted: the spans of streams grow with it.
        now: datetime = await driver.fetchval("SELECT clock_timestamp()")
        stored, new = await _store(driver, shard, batches, now=now, overdue_before=now - timedelta(seconds=park_s))
        if policies is not None:
            await policies.apply(connection, new, now=now)
        return stored


async def has_overdue(db: Database, shard: int, *, park_s: float) -> bool:
    """Whether a batch of the shard has waited long enough; cheap, and takes no lock."""
    async with db.read() as connection:
        found = await connection.scalar(
            text(
                "SELECT EXISTS (SELECT FROM log_parked WHERE shard = :shard"
                " AND parked_at < clock_timestamp() - :park_s * interval '1 second')"
            ),
            {"shard": shard, "park_s": park_s},
        )
        return bool(found)


async def _store(
    driver: Any, shard: int, batches: Sequence[LogBatch], *, now: datetime, overdue_before: datetime
) -> tuple[Stored, Mapping[str, Sequence[LogLine]]]:
    arriving: dict[str, list[LogBatch]] = {}
    for batch in batches:
        arriving.setdefault(batch.stream, []).append(batch)
    parked, overdue = await _parked(driver, shard, arriving, overdue_before)
    keys = sorted({*arriving, *parked})
    positions = await _positions(driver, keys)
    arrivals: dict[str, Arrival] = {}
    owners: dict[str, LogBatch] = {}
    for key in keys:
        waiting = parked.get(key, [])
        arrivals[key] = arrive(
            positions.get(key, Position()), arriving.get(key, []), parked=waiting, overdue=key in overdue
        )
        owners[key] = (arriving.get(key) or waiting)[0]
    lines_by_task = _lines_by_task(arrivals, owners)
    await _copy(driver, lines_by_task, now)
    moved = {
        key: arrival for key, arrival in arrivals.items() if arrival.sealed or positions.get(key) != arrival.position
    }
    await _save_positions(driver, moved, owners, now)
    await _save_parked(driver, shard, arrivals, parked, now)
    stored = Stored(
        lines_by_task={task: len(lines) for task, lines in lines_by_task.items()},
        parked=sum(len(arrival.parked) for arrival in arrivals.values()),
        given_up=sum(key in overdue for key in keys),
    )
    return stored, lines_by_task


async def _positions(driver: Any, keys: Sequence[str]) -> dict[str, Position]:
    rows = await driver.fetch(
        "SELECT stream_key, next_seq, missing FROM log_streams WHERE stream_key = ANY($1) FOR UPDATE", keys
    )
    return {
        row["stream_key"]: Position(row["next_seq"], tuple(zip(row["missing"][::2], row["missing"][1::2], strict=True)))
        for row in rows
    }


async def _parked(
    driver: Any, shard: int, keys: Mapping[str, Any], overdue_before: datetime
) -> tuple[dict[str, list[LogBatch]], set[str]]:
    """What waits in the streams that are touched and in those where something is overdue, and which the latter are."""
    rows = await driver.fetch(
        "WITH overdue AS (SELECT DISTINCT stream_key FROM log_parked WHERE shard = $1 AND parked_at < $2)"
        " SELECT stream_key, batch, stream_key IN (SELECT stream_key FROM overdue) AS overdue FROM log_parked"
        " WHERE shard = $1 AND (stream_key = ANY($3) OR stream_key IN (SELECT stream_key FROM overdue))"
        " ORDER BY stream_key, first_seq",
        shard,
        overdue_before,
        list(keys),
    )
    parked: dict[str, list[LogBatch]] = {}
    for row in rows:
        parked.setdefault(row["stream_key"], []).append(_DECODER.decode(row["batch"]))
    return parked, {row["stream_key"] for row in rows if row["overdue"]}


def _lines_by_task(arrivals: Mapping[str, Arrival], owners: Mapping[str, LogBatch]) -> dict[str, Sequence[LogLine]]:
    """New lines in the order in which they are stored; none for a task of which only a stream has ended."""
    streams: dict[str, list[Sequence[LogLine]]] = {}
    for key, arrival in arrivals.items():
        if arrival.lines or arrival.sealed:
            streams.setdefault(owners[key].task, []).append(arrival.lines)
    return {task: in_order_of_time(of_it) for task, of_it in streams.items()}


async def _copy(driver: Any, lines_by_task: Mapping[str, Sequence[LogLine]], now: datetime) -> None:
    if any(lines_by_task.values()):
        rows = _rows(lines_by_task, now)
        await driver.copy_to_table("task_logs", source=rows, columns=COLUMNS, format="binary")


async def _rows(lines_by_task: Mapping[str, Sequence[LogLine]], now: datetime) -> AsyncIterator[bytes]:
    yield SIGNATURE
    for task, lines in lines_by_task.items():
        for piece in rows_of(task, lines, now):
            yield piece
    yield TRAILER


async def _save_positions(
    driver: Any, arrivals: Mapping[str, Arrival], owners: Mapping[str, LogBatch], now: datetime
) -> None:
    await driver.executemany(
        "INSERT INTO log_streams AS s"
        " (stream_key, task_id, allocation_id, contiguous, next_seq, missing, sealed_at, opened_at, written_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $7 THEN $8::timestamptz END, $8, $8)"
        " ON CONFLICT (stream_key) DO UPDATE SET next_seq = excluded.next_seq, missing = excluded.missing,"
        " sealed_at = coalesce(s.sealed_at, excluded.sealed_at),"
        # A clock may step back.
        " opened_at = least(s.opened_at, $8), written_at = greatest(s.written_at, $8)",
        [
            (
                key,
                owners[key].task,
                owners[key].allocation,
                owners[key].contiguous,
                arrival.position.next_seq,
                [border for gap in arrival.position.missing for border in gap],
                arrival.sealed,
                now,
            )
            for key, arrival in arrivals.items()
        ],
    )


async def _save_parked(
    driver: Any,
    shard: int,
    arrivals: Mapping[str, Arrival],
    before: Mapping[str, Sequence[LogBatch]],
    now: datetime,
) -> None:
    """Replace what waits in each stream, keeping the time since which it waits."""
    gone: list[tuple[str, int]] = []
    fresh: list[tuple[Any, ...]] = []
    for key, arrival in arrivals.items():
        old = {extent(batch): batch for batch in before.get(key, ())}
        still = {extent(batch): batch for batch in arrival.parked}
        gone.extend((key, first) for first, end in old if (first, end) not in still)
        fresh.extend(
            (key, shard, first, end, msgspec.msgpack.encode(batch), now)
            for (first, end), batch in still.items()
            if old.get((first, end)) != batch
        )
    if gone:
        await driver.executemany("DELETE FROM log_parked WHERE stream_key = $1 AND first_seq = $2", gone)
    if fresh:
        await driver.executemany(
            "INSERT INTO log_parked (stream_key, shard, first_seq, end_seq, batch, parked_at)"
            " VALUES ($1, $2, $3, $4, $5, $6)"
            " ON CONFLICT (stream_key, first_seq) DO UPDATE SET end_seq = excluded.end_seq, batch = excluded.batch",
            fresh,
        )
