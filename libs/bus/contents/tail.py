"""Follows a stream, for readers that only look: nothing is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Final

import structlog
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from libs.bus.availability import RESTART_PAUSE_S, retry_until_answered
from libs.bus.connection import Connection, apart
from libs.bus.contents.states import stream_state
from libs.bus.message import Message, read
from libs.bus.pull import PullLostError, PullSession
from libs.errors import Unavailable
from libs.ids import new_uuid

log = structlog.get_logger()

AT_ONCE: Final = 500
READER_KEPT_S: Final = 60.0


async def follow_stream(
    connection: Connection, stream: str, *, since: datetime | None = None, filter: str = ">"
) -> AsyncGenerator[Message, None]:
    """Every message that ``stream`` has, in order, then those that come; for ever.

    since   leave out what was stored before
    filter  subjects, with wildcards

    A stream that was lost and made again is read from its beginning: then sequences begin anew. Raises Unavailable only
    when the connection is closed for good.
    """
    last = 0
    while True:
        try:
            consumer, last = await retry_until_answered(
                connection,
                stream,
                lambda: _create(connection, stream, last, since, filter),  # noqa: B023
            )
            async with PullSession(connection, stream=stream, consumer=consumer) as session:
                while True:
                    if session.open == 0:
                        await session.pull(AT_ONCE)
                    raw = await session.next()
                    if raw is not None:
                        message = read(raw)
                        last = message.sequence
                        yield message
        except (PullLostError, NatsError, OSError) as error:
            log.info("bus.reading_interrupted", stream=stream, reason=str(error))
            await asyncio.sleep(RESTART_PAUSE_S)


async def _create(
    connection: Connection, stream: str, last: int, since: datetime | None, filter: str
) -> tuple[str, int]:
    """A consumer of our own that begins behind ``last``, or at ``since`` when the stream does not go that far."""
    state = await stream_state(connection, stream)
    if state is None:
        raise Unavailable(f"the bus has no {stream}")
    behind = last if state.last_sequence >= last else 0
    name = f"tail-{new_uuid()}"
    from_time = since if behind == 0 else None
    config = ConsumerConfig(
        name=name,
        ack_policy=AckPolicy.NONE,
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE if from_time is None else DeliverPolicy.BY_START_TIME,
        opt_start_seq=behind + 1 if from_time is None else None,
        opt_start_time=from_time,
        filter_subject=filter,
        inactive_threshold=READER_KEPT_S,
        mem_storage=True,
        num_replicas=1,
    )
    await apart(connection.jetstream.add_consumer(stream, config))
    return name, behind
