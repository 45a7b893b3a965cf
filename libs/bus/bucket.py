"""Key-value buckets: desired state and snapshots that others watch.

A watch is level-triggered. It begins with everything that is there, says so with ``SnapshotEnd``, and goes on with
changes; after any doubt about the link it begins again with everything. Between two snapshots a deletion can only be
missed together with the link, and then the next snapshot lacks the key.
Source: NATS ADR-8 (KV on streams), ADR-31 (direct get).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from libs.bus.availability import RESTART_PAUSE_S, retry_until_answered
from libs.bus.connection import Connection, apart
from libs.bus.headers import SEQUENCE, STATUS, deletion_headers, is_deletion
from libs.bus.publish import Outbound, fits, publish
from libs.bus.pull import PullLostError, PullSession
from libs.errors import Unavailable
from libs.events.subjects import bucket_stream, kv_subject
from libs.ids import new_uuid

log = structlog.get_logger()

WATCH_BATCH: Final = 500
WATCHER_KEPT_S: Final = 60.0
"""How long the server remembers a watcher that went away without a word."""


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    value: bytes
    revision: int
    """Grows with every change anywhere in the bucket, unless the server lost its disk."""


@dataclass(frozen=True, slots=True)
class KvChange:
    key: str
    value: bytes | None
    """None when the key was deleted."""
    revision: int


@dataclass(frozen=True, slots=True)
class SnapshotEnd:
    """Everything that exists has been yielded; other keys do not exist, whatever was seen of them before."""

    keys: frozenset[str]


class Bucket:
    """One bucket, by name. Keys are dotted tokens, as ``libs/events/subjects.py`` spells them."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._stream = bucket_stream(name)

    async def get(self, key: str) -> Entry | None:
        """The present value, or None. Raises Unavailable when the server does not answer."""
        timeout_s = self._connection.settings.request_timeout_s
        await self._connection.wait_connected(timeout_s)
        subject = kv_subject(self._name, key)
        try:
            reply = await self._connection.while_connected(
                self._connection.client.request(f"$JS.API.DIRECT.GET.{self._stream}.{subject}", timeout=timeout_s)
            )
        except (NatsError, OSError) as error:
            raise Unavailable(f"the bus did not answer for {subject}: {error}") from error
        headers = reply.headers or {}
        if STATUS in headers:
            if headers[STATUS] == "404":
                return None
            raise Unavailable(f"the bus did not answer for {subject}: {headers[STATUS]}")
        if is_deletion(headers):
            return None
        return Entry(key, reply.data, int(headers[SEQUENCE]))

    def fits(self, key: str, value: bytes) -> bool:
        """Whether the server takes a value of this size at all."""
        return fits(self._connection, Outbound(kv_subject(self._name, key), value))

    async def put(self, key: str, value: bytes) -> int:
        """Store ``value`` and return its revision. Raises Unavailable like ``Bus.publish``."""
        return await publish(self._connection, Outbound(kv_subject(self._name, key), value))

    async def delete(self, key: str) -> None:
        """Delete ``key`` if it exists; watchers see it. Raises Unavailable like ``Bus.publish``."""
        await publish(self._connection, Outbound(kv_subject(self._name, key), b"", headers=deletion_headers()))

    async def purge_deletions(self, *, before: datetime, most: int = 1000) -> int:
        """Remove what is left of keys that were deleted before then, ``most`` of them at once; returns how many.

        Servers that expire single messages do so by themselves; to others, and of deletions that came without their
        time to live, it has to be said. Raises Unavailable when the server does not answer.
        """
        await self._connection.wait_connected(self._connection.settings.request_timeout_s)
        try:
            old = await self._deletions(before)
            for raw in old[:most]:
                # Up to the deletion itself: a value that came after it stays.
                sequence = raw.metadata.sequence.stream
                await apart(
                    self._connection.jetstream.purge_stream(self._stream, seq=sequence + 1, subject=raw.subject)
                )
        except (PullLostError, NatsError, OSError) as error:
            raise Unavailable(f"the bus could not purge {self._name}: {error}") from error
        return len(old[:most])

    async def keys(self, filter: str = ">") -> list[str]:
        """Keys that match ``filter`` (NATS wildcards), sorted. Raises Unavailable when the server does not answer."""
        await self._connection.wait_connected(self._connection.settings.request_timeout_s)
        try:
            consumer = await self._create_consumer(filter, headers_only=True)
            async with aclosing(self._follow(consumer)) as changes:
                async for change in changes:
                    if isinstance(change, SnapshotEnd):
                        return sorted(change.keys)
        except (PullLostError, NatsError, OSError) as error:
            raise Unavailable(f"the bus could not list {self._name}: {error}") from error
        raise AssertionError("a listing ends with SnapshotEnd or an error")

    async def watch(
        self, filter: str = ">", *, headers_only: bool = False
    ) -> AsyncGenerator[KvChange | SnapshotEnd, None]:
        """Everything present, ``SnapshotEnd``, then changes as they come; for ever.

        headers_only  values are not sent, and come as b""
        Survives reconnects and restarts of the server by yielding everything again, up to another ``SnapshotEnd``.
        Raises Unavailable only when the connection is closed for good. Close the generator (``contextlib.aclosing``)
        when done with it.
        """
        while True:
            try:
                consumer = await retry_until_answered(
                    self._connection, self._stream, lambda: self._create_consumer(filter, headers_only=headers_only)
                )
                async with aclosing(self._follow(consumer)) as changes:
                    async for change in changes:
                        yield change
            except (PullLostError, NatsError, OSError) as error:
                log.info("bus.watch_interrupted", bucket=self._name, reason=str(error))
                await asyncio.sleep(RESTART_PAUSE_S)

    async def _create_consumer(self, filter: str, *, headers_only: bool) -> str:
        """A consumer of our own that begins with the last value of every key; returns its name."""
        config = ConsumerConfig(
            name=f"watch-{new_uuid()}",
            filter_subject=kv_subject(self._name, filter),
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
            headers_only=headers_only,
            inactive_threshold=WATCHER_KEPT_S,
            mem_storage=True,
            num_replicas=1,
        )
        await apart(self._connection.jetstream.add_consumer(self._stream, config))
        assert config.name is not None
        return config.name

    async def _follow(self, consumer: str) -> AsyncGenerator[KvChange | SnapshotEnd, None]:
        """What ``consumer`` delivers: the present content, SnapshotEnd, changes. Raises PullLostError."""
        async with PullSession(self._connection, stream=self._stream, consumer=consumer) as session:
            present: set[str] = set()
            order = _Order()
            async with aclosing(_present(session)) as messages:
                async for raw in messages:
                    change = self._read(raw, order)
                    if change.value is None:
                        present.discard(change.key)
                    else:
                        present.add(change.key)
                    yield change
            yield SnapshotEnd(frozenset(present))
            while True:
                if session.open == 0:
                    await session.pull(WATCH_BATCH)
                news = await session.next()
                if news is not None:
                    yield self._read(news, order)

    async def _deletions(self, before: datetime) -> list[Msg]:
        """Deletions that the stream still has, of keys that have had no value since then."""
        consumer = await self._create_consumer(">", headers_only=True)
        async with (
            PullSession(self._connection, stream=self._stream, consumer=consumer) as session,
            aclosing(_present(session)) as messages,
        ):
            return [raw async for raw in messages if is_deletion(raw.headers) and raw.metadata.timestamp < before]

    def _read(self, raw: Msg, order: _Order) -> KvChange:
        sequence = raw.metadata.sequence
        order.check(sequence.consumer)
        key = raw.subject.removeprefix(kv_subject(self._name, ""))
        return KvChange(key, None if is_deletion(raw.headers) else raw.data, sequence.stream)


async def _present(session: PullSession) -> AsyncGenerator[Msg, None]:
    """Messages that the consumer has to deliver, until it has no more.

    The server's count of pending messages is a moving estimate while keys are being rewritten. That it has nothing more
    to deliver is a fact, and the absence of a key is too serious to be deduced from less.
    """
    while True:
        await session.pull_present(WATCH_BATCH)
        while session.open:
            raw = await session.next()
            if raw is None:
                return
            yield raw


class _Order:
    """Notices that the server sent something which did not arrive."""

    def __init__(self) -> None:
        self._last = 0

    def check(self, consumer_sequence: int) -> None:
        if consumer_sequence != self._last + 1:
            raise PullLostError(f"message {self._last + 1} of the watch did not arrive")
        self._last = consumer_sequence
