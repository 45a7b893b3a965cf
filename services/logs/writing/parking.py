"""Parks batches that came before their predecessors, in the database, so that nothing is lost with a writer.

A gap is given up when it has lasted for too long, counted in time in which the missing chunk could have come: the clock
of a stream begins anew whenever something comes from before what had been seen, and whenever this service could not
take what pods sent (``restart_clocks``). Source: docs/reference/logs.md 13.9, 13.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.db.connecting.pool import DriverPool
from libs.events.logs import LogBatch
from libs.loglines.partitions import SHARD_LOCK
from services.logs.lines.arrival import extent
from services.logs.settings import WriterSettings

TAKEN_AT_ONCE: Final = 32
"""Batches of half a megabyte that are read together."""

_DECODER: Final = msgspec.msgpack.Decoder(LogBatch)
_OVERDUE: Final = """
    SELECT stream_key, wait_s FROM (
        SELECT s.stream_key, s.waits_since,
            CASE WHEN a.end_time < clock_timestamp() - $2::float8 * interval '1 second' OR a.allocation_id IS NULL
                THEN $2::float8 ELSE $3::float8 END AS wait_s
        FROM log_streams s LEFT JOIN allocations a ON a.allocation_id = s.allocation_id
        WHERE s.waits_in = $1
    ) w
    WHERE w.waits_since <= clock_timestamp() - w.wait_s * interval '1 second'
"""


class Head(Struct, frozen=True):
    """The first batch that waits in a stream."""

    first_seq: int
    parked_at: datetime


class Ready(Struct, frozen=True):
    """Batches that are no longer parked, because nothing before them is missing."""

    batches: tuple[LogBatch, ...]
    size_bytes: int


async def lock_shard(driver: Any, shard: int) -> None:
    """Be the only one who writes in a shard, until the transaction ends."""
    await driver.execute("SELECT pg_advisory_xact_lock($1, $2)", SHARD_LOCK, shard)


async def park(driver: Any, stream: str, batches: Iterable[LogBatch], *, now: datetime) -> list[tuple[LogBatch, int]]:
    """Keep batches until their turn; returns those that were not there already, with their sizes in bytes."""
    added = []
    for batch in batches:
        first, end = extent(batch)
        encoded = msgspec.msgpack.encode(batch)
        size = await driver.fetchval(
            "INSERT INTO log_parked (stream_key, first_seq, end_seq, size_bytes, batch, parked_at)"
            " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING size_bytes",
            stream,
            first,
            end,
            len(encoded),
            encoded,
            now,
        )
        if size is not None:
            added.append((batch, size))
    return added


async def take_ready(driver: Any, stream: str, next_seq: int, *, limit: int) -> Ready:
    """Take out the batches that can be stored when everything below ``next_seq`` is, about ``limit`` of them."""
    rows = await driver.fetch(
        "SELECT first_seq, end_seq FROM log_parked WHERE stream_key = $1 ORDER BY first_seq, end_seq LIMIT $2",
        stream,
        limit,
    )
    last = None
    for first, end in rows:
        if first > next_seq:
            break
        next_seq, last = max(next_seq, end), first
    if last is None:
        return Ready((), 0)
    taken = await driver.fetch(
        "DELETE FROM log_parked WHERE stream_key = $1 AND first_seq <= $2 RETURNING batch, size_bytes", stream, last
    )
    return Ready(
        tuple(_DECODER.decode(row["batch"]) for row in taken),
        sum(row["size_bytes"] for row in taken),
    )


async def head_of(driver: Any, stream: str) -> Head | None:
    row = await driver.fetchrow(
        "SELECT first_seq, parked_at FROM log_parked WHERE stream_key = $1 ORDER BY first_seq LIMIT 1", stream
    )
    return Head(row["first_seq"], row["parked_at"]) if row is not None else None


async def waiting_streams(db: DriverPool, shard: int) -> list[str]:
    """Streams of a shard in which something waits."""
    async with db.read() as connection:
        rows = await connection.fetch("SELECT stream_key FROM log_streams WHERE waits_in = $1", shard)
    return [row["stream_key"] for row in rows]


async def overdue_streams(db: DriverPool, shard: int, settings: WriterSettings) -> dict[str, float]:
    """Streams of a shard that have waited for too long, and for how many seconds at least.

    A pod that has ended sends nothing after its grace, so its streams wait for a shorter time.
    """
    async with db.read() as connection:
        rows = await connection.fetch(_OVERDUE, shard, settings.gap_wait_ended_s, settings.gap_wait_s)
    return {row["stream_key"]: row["wait_s"] for row in rows}


async def restart_clocks(db: DriverPool, shard: int, tasks: Sequence[str] | None = None) -> None:
    """Let streams of a shard wait anew, those of ``tasks`` or all: what they wait for could not have come so far."""
    async with db.transaction() as connection:
        await lock_shard(connection, shard)
        await connection.execute(
            "UPDATE log_streams SET waits_since = clock_timestamp() WHERE waits_in = $1"
            " AND ($2::text[] IS NULL OR task_id = ANY($2))",
            shard,
            None if tasks is None else list(tasks),
        )
