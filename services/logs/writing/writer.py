"""Writes the batches of a shard: stores them, then acknowledges them, then announces them to followers.

Whatever dies in between, the batch comes again and the store drops what it has. Source: docs/reference/logs.md 13.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import structlog

from libs.bus import Bus, Message
from libs.db.connecting.pool import DriverPool
from libs.db.failures import MAYBE_BAD_VALUE, is_bad_value
from libs.events import subjects
from libs.events.logs import LogBatch
from libs.telemetry import counter
from services.logs.settings import WriterSettings
from services.logs.writing.gaps import GapWatch
from services.logs.writing.launcher_lines import reject_foreign_lines
from services.logs.writing.line_webhooks import LogWebhooks
from services.logs.writing.policy_effects import LogPolicies
from services.logs.writing.shard_assignment import ShardAssigner
from services.logs.writing.store import ONLY_WHAT_IS_READY, Stored, store

log = structlog.get_logger()

LINES = counter("resolute_logs_lines_stored_total", "Lines that were stored")
REFUSED = counter("resolute_logs_batches_refused_total", "Batches that can never be stored")
GIVEN_UP = counter("resolute_logs_gaps_total", "Gaps that were not waited for any longer")
LINES_GIVEN_UP = counter("resolute_logs_lines_given_up_total", "Lines that were not waited for any longer")
UNENDED = counter(
    "resolute_logs_unended_streams_total",
    "Outputs of containers that broke off: nobody knows how many lines they had",
)

_DECODER = msgspec.msgpack.Decoder(LogBatch)


class LogWriter:
    """The writing side of one replica."""

    def __init__(self, *, db: DriverPool, bus: Bus, settings: WriterSettings, name: str) -> None:
        self._db = db
        self._bus = bus
        self._settings = settings
        self._policies = LogPolicies()
        self._webhooks = LogWebhooks()
        self._shards = ShardAssigner(db=db, writer=name, heartbeat_s=settings.heartbeat_s)

    async def run(self) -> None:
        """Write the shards that fall to this replica until cancelled."""
        await self._shards.run(self._write_shard)

    async def _write_shard(self, shard: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                self._bus.consume_batches(
                    stream=subjects.LOGS_STREAM,
                    durable=subjects.logs_writer(shard),
                    filter=subjects.logs_of_shard(shard),
                    handler=partial(self.write, shard),
                    max_messages=self._settings.batch_messages,
                    max_wait_s=self._settings.linger_s,
                )
            )
            gaps = GapWatch(db=self._db, bus=self._bus, shard=shard, settings=self._settings)
            tasks.create_task(gaps.run(partial(self._keep, shard, ())))

    async def write(self, shard: int, messages: Sequence[Message]) -> None:
        """Store the batches in ``messages``. Raises when they could not be stored and should come again."""
        said = [(message.subject, batch) for message in messages if (batch := _decode(message)) is not None]
        batches = await reject_foreign_lines(self._db, said)
        REFUSED.inc(len(said) - len(batches))
        if batches:
            await self._store(shard, batches)

    async def _store(self, shard: int, batches: Sequence[LogBatch]) -> None:
        try:
            await self._keep(shard, batches, {})
        except MAYBE_BAD_VALUE as error:
            if not is_bad_value(error):
                raise
            # Coming again would not help, and would hold up the shard for ever: find the one that it is.
            if len(batches) > 1:
                for batch in batches:
                    await self._store(shard, (batch,))
                return
            log.error("logs.batch_refused", task=batches[0].task, stream=batches[0].stream, error=str(error))
            REFUSED.inc()

    async def _keep(self, shard: int, batches: Sequence[LogBatch], overdue: Mapping[str, float]) -> None:
        """Store, in as many transactions as it takes; what a later one is about is safe in the database."""
        while True:
            stored = await store(
                self._db,
                shard,
                batches,
                overdue=overdue,
                parked_bytes=self._settings.parked_bytes,
                policies=self._policies,
                webhooks=self._webhooks,
            )
            await self._announce(stored)
            if not stored.unfinished:
                return
            batches = ()
            overdue = {stream: overdue.get(stream, ONLY_WHAT_IS_READY) for stream in stored.unfinished}

    async def _announce(self, stored: Stored) -> None:
        LINES.inc(sum(stored.lines_by_task.values()))
        GIVEN_UP.inc(stored.given_up)
        LINES_GIVEN_UP.inc(stored.lines_given_up)
        UNENDED.inc(stored.unended)
        for task in stored.lines_by_task:
            await self._bus.publish_core(subjects.log_stored(task), b"")


def _decode(message: Message) -> LogBatch | None:
    try:
        return _DECODER.decode(message.data)
    except msgspec.MsgspecError as error:
        log.error("logs.message_refused", subject=message.subject, sequence=message.sequence, error=str(error))
        REFUSED.inc()
        return None
