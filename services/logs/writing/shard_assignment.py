"""Assigns shards to replicas: each live writer takes its share, by rendezvous hashing.

A share is advice. While replicas disagree for a moment, two may want the same shard: the bus gives its batches to one
of them, and the lock of the shard keeps even a stalled writer from harm.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

import structlog

from libs.db.connecting.pool import DriverPool
from libs.db.failures import is_connection_failure
from libs.events.subjects import LOG_SHARDS
from libs.telemetry import gauge

log = structlog.get_logger()

SILENT_HEARTBEATS: Final = 3
SHARDS: Final = gauge("resolute_logs_shards", "Shards of the log that this replica writes")


def share_of(writer: str, writers: Iterable[str]) -> frozenset[int]:
    """Shards that fall to ``writer`` among ``writers``; a writer more or less moves only the shards it gains or loses.

    A writer that is not among them has no share.
    """
    live = sorted(set(writers))
    return frozenset(
        shard
        for shard in range(LOG_SHARDS)
        if live and max(live, key=lambda name: (zlib.crc32(f"{shard}/{name}".encode()), name)) == writer
    )


class ShardAssigner:
    """Keeps one task per shard of this replica running, as the set of live replicas changes."""

    def __init__(self, *, db: DriverPool, writer: str, heartbeat_s: float) -> None:
        self._db = db
        self._writer = writer
        self._heartbeat_s = heartbeat_s
        self._running: dict[int, asyncio.Task[None]] = {}

    @property
    def shards(self) -> frozenset[int]:
        """Shards this replica has now."""
        return frozenset(self._running)

    async def run(self, work: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        """Run ``work(shard)`` for each shard of this replica until cancelled; an exception of one ends all.

        Without the database nothing is written, so the shares stay as they were until it is back.
        """
        try:
            while True:
                try:
                    await self._settle(share_of(self._writer, await self._live()), work)
                except Exception as error:
                    if not is_connection_failure(error):
                        raise
                    log.warning("logs.heartbeat_failed", error=str(error))
                await self._watch()
        finally:
            await self._settle(frozenset(), work)
            await self._leave()

    async def _live(self) -> list[str]:
        async with self._db.transaction() as connection:
            await connection.execute(
                "INSERT INTO log_writers (writer, expires_at) VALUES ($1, now() + $2::float8 * interval '1 second')"
                " ON CONFLICT (writer) DO UPDATE SET expires_at = excluded.expires_at",
                self._writer,
                SILENT_HEARTBEATS * self._heartbeat_s,
            )
            await connection.execute("DELETE FROM log_writers WHERE expires_at < now() - interval '1 hour'")
            rows = await connection.fetch("SELECT writer FROM log_writers WHERE expires_at > now()")
            return [row["writer"] for row in rows]

    async def _leave(self) -> None:
        try:
            async with self._db.transaction() as connection:
                await connection.execute("DELETE FROM log_writers WHERE writer = $1", self._writer)
        except Exception as error:
            if not is_connection_failure(error):
                raise
            log.info("logs.writer_left_unannounced", error=str(error))  # the row expires by itself

    async def _settle(self, shards: frozenset[int], work: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        leaving = [self._running.pop(shard) for shard in self.shards - shards]
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        joining = sorted(shards - self.shards)
        for shard in joining:
            self._running[shard] = asyncio.create_task(work(shard), name=f"log shard {shard}")
        SHARDS.set(len(self._running))
        if leaving or joining:
            log.info("logs.shards", shards=sorted(shards))

    async def _watch(self) -> None:
        """Wait one heartbeat; raise at once what a shard raises."""
        if not self._running:
            await asyncio.sleep(self._heartbeat_s)
            return
        done, _ = await asyncio.wait(
            self._running.values(), timeout=self._heartbeat_s, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in done:
            task.result()
