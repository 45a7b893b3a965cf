"""Stores batches in one transaction: new lines in ``task_logs``, and beside them how far their streams have come.

The lock of the shard is held from the first statement to the commit, so ids of a task grow in the order of commits
whoever writes, and a reader's cursor never leaves a line behind (docs/reference/logs.md 4.5, 13.9).
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from libs.db.connecting.pool import DriverPool
from libs.events.logs import LogBatch, LogLine
from services.logs.lines.arrival import StreamPosition
from services.logs.lines.copy_format import COLUMNS, SIGNATURE, TRAILER, rows_of
from services.logs.lines.rows import in_order_of_time
from services.logs.writing.line_webhooks import LogWebhooks
from services.logs.writing.parking import lock_shard
from services.logs.writing.policy_effects import LogPolicies
from services.logs.writing.stream_update import Stream, StreamLimits, StreamUpdate, update_stream

UNPARKED_AT_ONCE: Final = 64
"""Batches that one transaction takes from where they waited; they may be half a megabyte each."""
ONLY_WHAT_IS_READY: Final = math.inf
"""As the wait of a stream in ``overdue``: none of its gaps is given up."""


class Stored(Struct, frozen=True, kw_only=True):
    """What a transaction has changed."""

    lines_by_task: Mapping[str, int]
    """Tasks with news: lines, or the end of a stream."""
    given_up: int
    """Gaps that are not waited for any longer."""
    lines_given_up: int
    """Lines in them."""
    unended: int
    """Streams that have ended, nobody knows with how many lines."""
    unfinished: tuple[str, ...]
    """Streams of which more can be stored, in further transactions."""


async def store(
    db: DriverPool,
    shard: int,
    batches: Sequence[LogBatch],
    *,
    parked_bytes: int,
    overdue: Mapping[str, float] | None = None,
    policies: LogPolicies | None = None,
    webhooks: LogWebhooks | None = None,
) -> Stored:
    """Store batches of tasks of one shard, in the order of delivery; repeating any of it changes nothing.

    parked_bytes  what of a stream may wait for lines before it
    overdue  streams to look at besides: gaps in them that have lasted so many seconds are given up
    policies  told of every line that is new
    webhooks  likewise
    """
    async with db.transaction() as driver:
        await lock_shard(driver, shard)
        # Read after the lock was granted: the spans of streams grow with it.
        now: datetime = await driver.fetchval("SELECT clock_timestamp()")
        updates = await _update_streams(driver, batches, overdue or {}, parked_bytes=parked_bytes, now=now)
        lines_by_task = _lines_by_task(updates)
        await _copy(driver, lines_by_task, now)
        await _save(driver, shard, updates, now)
        if policies is not None:
            await policies.apply(driver, lines_by_task, now=now)
        if webhooks is not None:
            await webhooks.apply(driver, lines_by_task, now=now)
    return Stored(
        lines_by_task={task: len(lines) for task, lines in lines_by_task.items()},
        given_up=sum(each.given_up for each in updates),
        lines_given_up=sum(each.lines_given_up for each in updates),
        unended=sum(each.is_unended for each in updates),
        unfinished=tuple(each.stream.key for each in updates if each.is_unfinished),
    )


async def _update_streams(
    driver: Any, batches: Sequence[LogBatch], overdue: Mapping[str, float], *, parked_bytes: int, now: datetime
) -> list[StreamUpdate]:
    arriving: dict[str, list[LogBatch]] = {}
    for batch in batches:
        arriving.setdefault(batch.stream, []).append(batch)
    known = await _streams(driver, sorted({*arriving, *overdue}))
    room = UNPARKED_AT_ONCE
    found: list[StreamUpdate] = []
    for key in sorted({*arriving, *known}):
        wait_s = overdue.get(key, ONLY_WHAT_IS_READY)
        limits = StreamLimits(
            overdue_before=now - timedelta(seconds=wait_s) if wait_s < ONLY_WHAT_IS_READY else None,
            parked_bytes=parked_bytes,
            unparked=room,
        )
        news = arriving.get(key, [])
        update = await update_stream(driver, known.get(key) or _new_stream(news[0]), news, limits=limits, now=now)
        room -= update.unparked
        found.append(update)
    return found


def _new_stream(batch: LogBatch) -> Stream:
    return Stream(key=batch.stream, task=batch.task, allocation=batch.allocation, contiguous=batch.contiguous)


async def _streams(driver: Any, keys: Sequence[str]) -> dict[str, Stream]:
    rows = await driver.fetch(
        "SELECT stream_key, task_id, allocation_id, contiguous, next_seq, missing, end_seq, seen_seq, waits_since,"
        " parked_bytes FROM log_streams WHERE stream_key = ANY($1) FOR UPDATE",
        keys,
    )
    return {row["stream_key"]: _stream(row) for row in rows}


def _stream(row: Any) -> Stream:
    missing = tuple(zip(row["missing"][::2], row["missing"][1::2], strict=True))
    return Stream(
        key=row["stream_key"],
        task=row["task_id"],
        allocation=row["allocation_id"],
        contiguous=row["contiguous"],
        position=StreamPosition(row["next_seq"], missing, row["end_seq"], row["seen_seq"]),
        waits_since=row["waits_since"],
        parked_bytes=row["parked_bytes"],
    )


def _lines_by_task(updates: Sequence[StreamUpdate]) -> dict[str, Sequence[LogLine]]:
    """New lines in the order in which they are stored; none for a task of which only a stream has ended."""
    streams: dict[str, list[Sequence[LogLine]]] = {}
    for each in updates:
        if each.lines or each.has_ended:
            streams.setdefault(each.stream.task, []).append(each.lines)
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


async def _save(driver: Any, shard: int, updates: Sequence[StreamUpdate], now: datetime) -> None:
    await driver.executemany(
        "INSERT INTO log_streams AS s"
        " (stream_key, task_id, allocation_id, contiguous, next_seq, missing, end_seq, seen_seq, waits_in, waits_since,"
        " parked_bytes, sealed_at, opened_at, written_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, CASE WHEN $12 THEN $13::timestamptz END, $13, $13)"
        " ON CONFLICT (stream_key) DO UPDATE SET next_seq = excluded.next_seq, missing = excluded.missing,"
        " end_seq = excluded.end_seq, seen_seq = excluded.seen_seq, waits_in = excluded.waits_in,"
        " waits_since = excluded.waits_since, parked_bytes = excluded.parked_bytes,"
        " sealed_at = coalesce(s.sealed_at, excluded.sealed_at),"
        # A clock may step back.
        " opened_at = least(s.opened_at, $13), written_at = greatest(s.written_at, $13)",
        [
            (
                stream.key,
                stream.task,
                stream.allocation,
                stream.contiguous,
                stream.position.next_seq,
                [border for gap in stream.position.missing for border in gap],
                stream.position.end_seq,
                stream.position.seen_seq,
                shard if stream.position.waits or stream.parked_bytes else None,
                stream.waits_since,
                stream.parked_bytes,
                each.has_ended,
                now,
            )
            for each in updates
            for stream in (each.stream,)
        ],
    )
