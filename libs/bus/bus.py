"""The bus as services see it: one object per process, handed to whoever needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Literal

import structlog

from libs.bus import availability, batches, consumer, core, publish, streams
from libs.bus.bucket import Bucket
from libs.bus.connection import Connection, open_connection
from libs.bus.contents.reading import StoredMessage, stored_messages
from libs.bus.contents.states import StreamStatus, stream_states
from libs.bus.contents.tail import follow_stream
from libs.bus.message import Message
from libs.bus.publish import Outbound
from libs.bus.settings import BusSettings
from libs.bus.storage_probe import StorageProbe
from libs.errors import Unavailable

log = structlog.get_logger()


class Bus:
    """See the functions it passes on to for what they promise."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._storage = StorageProbe(connection)

    @property
    def is_connected(self) -> bool:
        return self._connection.client.is_connected

    async def refused_streams(self) -> tuple[str, ...]:
        """``storage.StorageProbe.refused``: streams that do not take messages, seen by a write to each."""
        return await self._storage.refused()

    async def problem(self) -> str | None:
        """Why the bus cannot be relied on now; None when it is connected and stores what it is given.

        Whether it stores is found out by services that may create its streams; others have no right to the subjects.
        """
        if not self.is_connected:
            return "not connected"
        refused = await self.refused_streams() if self._connection.settings.manage_streams else ()
        return f"does not store {', '.join(refused)}" if refused else None

    async def stream_states(self) -> dict[str, StreamStatus]:
        """``contents.states.stream_states``: how the streams that are there stand."""
        return await stream_states(self._connection)

    def stored_messages(self, stream: str, *, last: int) -> AsyncIterator[StoredMessage]:
        """``contents.reading.stored_messages``: everything that a stream holds, without taking part in its work."""
        return stored_messages(self._connection, stream, last=last)

    def follow_stream(
        self, stream: str, *, since: datetime | None = None, filter: str = ">"
    ) -> AsyncGenerator[Message, None]:
        """``contents.tail.follow_stream``: everything that a stream holds, and what comes, for ever."""
        return follow_stream(self._connection, stream, since=since, filter=filter)

    async def ensure_streams(self) -> None:
        """``streams.ensure_streams``: create or update every stream and bucket; idempotent."""
        await streams.ensure_streams(self._connection)

    async def publish(
        self, subject: str, payload: bytes, *, msg_id: str | None = None, headers: Mapping[str, str] | None = None
    ) -> int:
        """``publish.publish``: return the sequence of the message once it is stored; raises Unavailable."""
        return await publish.publish(self._connection, Outbound(subject, payload, msg_id, headers or {}))

    async def publish_ahead(self, messages: Sequence[Outbound]) -> int:
        """``publish.publish_ahead``: send many at once; return how many, from the first on, are stored."""
        return await publish.publish_ahead(self._connection, messages)

    def fits(self, message: Outbound) -> bool:
        """``publish.fits``: whether the server takes messages of this size at all."""
        return publish.fits(self._connection, message)

    async def publish_core(self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """``core.publish_core``: tell whoever listens now; never raises for the network."""
        await core.publish_core(self._connection, subject, payload, headers)

    def bucket(self, name: str) -> Bucket:
        return Bucket(self._connection, name)

    async def consume(
        self,
        *,
        stream: str,
        durable: str,
        filter: str,
        handler: consumer.Handler,
        concurrency: int = 1,
        ack_wait_s: float = 30.0,
        max_ack_pending: int | None = None,
        deliver: Literal["all", "new"] = "all",
        finish_s: float = 10.0,
        on_gap: Callable[[], None] = lambda: None,
    ) -> None:
        """``consumer.consume``: give every message to ``handler`` at least once; runs until cancelled."""
        await consumer.consume(
            self._connection,
            stream=stream,
            durable=durable,
            filter=filter,
            handler=handler,
            concurrency=concurrency,
            ack_wait_s=ack_wait_s,
            max_ack_pending=max_ack_pending,
            deliver=deliver,
            finish_s=finish_s,
            on_gap=on_gap,
        )

    async def consume_batches(
        self,
        *,
        stream: str,
        durable: str,
        filter: str,
        handler: batches.BatchHandler,
        max_messages: int = 500,
        max_wait_s: float = 0.1,
        ack_wait_s: float = 60.0,
        finish_s: float = 10.0,
    ) -> None:
        """``batches.consume_batches``: batches in strict order, one process at a time; runs until cancelled."""
        await batches.consume_batches(
            self._connection,
            stream=stream,
            durable=durable,
            filter=filter,
            handler=handler,
            max_messages=max_messages,
            max_wait_s=max_wait_s,
            ack_wait_s=ack_wait_s,
            finish_s=finish_s,
        )

    def subscribe(
        self,
        subject: str,
        callback: Callable[[core.CoreMessage], Awaitable[None]],
        *,
        on_gap: Callable[[], None] | None = None,
    ) -> AbstractAsyncContextManager[None]:
        """``core.subscribe``: hear what is said while the block runs."""
        return core.subscribe(self._connection, subject, callback, on_gap=on_gap)

    async def request(self, subject: str, payload: bytes, *, timeout_s: float = 5.0) -> bytes:
        """``core.request``: ask a service; raises what it raised, or Unavailable."""
        return await core.request(self._connection, subject, payload, timeout_s)

    def serve(
        self, subject: str, handler: Callable[[core.CoreMessage], Awaitable[bytes]], *, queue: str = ""
    ) -> AbstractAsyncContextManager[None]:
        """``core.serve``: answer requests while the block runs."""
        return core.serve(self._connection, subject, handler, queue=queue)


@asynccontextmanager
async def connect_bus(settings: BusSettings) -> AsyncIterator[Bus]:
    """The bus for the duration of the block, with its streams if this service may create them.

    Waits for the server for ``connect_timeout_s`` and raises Unavailable then; afterwards reconnects for ever. A server
    that comes back empty gets its streams again. Leaving the block sends what is buffered and closes.
    """
    async with open_connection(settings) as connection:
        bus = Bus(connection)
        if not settings.manage_streams:
            yield bus
            return
        await _ensure_streams_soon(connection)
        reconnected = asyncio.Event()
        unregister = connection.on_gap(reconnected.set)
        watcher = asyncio.create_task(_restore_streams(connection, reconnected), name="bus streams")
        try:
            yield bus
        finally:
            unregister()
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)


async def _ensure_streams_soon(connection: Connection) -> None:
    """Create the streams; a server that has just started may need a moment before JetStream answers."""
    deadline = asyncio.get_running_loop().time() + connection.settings.connect_timeout_s
    while True:
        try:
            await streams.ensure_streams(connection)
            return
        except Unavailable as error:
            if asyncio.get_running_loop().time() > deadline:
                raise
            log.warning("bus.streams_failed", error=str(error))
        await asyncio.sleep(availability.RESTART_PAUSE_S)


async def _restore_streams(connection: Connection, reconnected: asyncio.Event) -> None:
    while True:
        await reconnected.wait()
        reconnected.clear()
        if connection.client.is_closed:
            return
        try:
            await streams.ensure_streams(connection)
        except Unavailable as error:
            log.warning("bus.streams_failed", error=str(error))
            await asyncio.sleep(availability.RESTART_PAUSE_S)
            reconnected.set()
