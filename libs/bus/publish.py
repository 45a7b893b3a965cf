"""Publishes messages into streams, and knows when they are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.js.api import PubAck
from nats.js.errors import NoStreamResponseError

from libs.bus.connection import Connection
from libs.bus.headers import MSG_ID, TTL, is_deletion
from libs.bus.streams import DELETIONS_KEPT_S, ensure_streams, knows_ttl
from libs.errors import Unavailable

log = structlog.get_logger()

AHEAD_MESSAGES: Final = 256
AHEAD_BYTES: Final = 2**20
"""Half of what the client library buffers: what is sent ahead goes into its buffer, and to the server, in one go."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """A message for a stream; ``msg_id`` lets the stream drop copies."""

    subject: str
    payload: bytes
    msg_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete_headers(self) -> dict[str, str]:
        return dict(self.headers) if self.msg_id is None else {**self.headers, MSG_ID: self.msg_id}

    @property
    def size(self) -> int:
        """Bytes that count against the limit of the server: headers and payload (NATS ADR-4)."""
        headers = sum(len(name.encode()) + len(value.encode()) + 4 for name, value in self.complete_headers.items())
        return len(self.payload) + (headers + len("NATS/1.0\r\n\r\n") if headers else 0)


def fits(connection: Connection, message: Outbound) -> bool:
    """Whether the server takes messages of this size at all."""
    return message.size <= connection.client.max_payload


async def publish(connection: Connection, message: Outbound) -> int:
    """Return the sequence of the message once its stream has stored it, or had stored it before under its ``msg_id``.

    Raises Unavailable when that is not known: there is no connection, no answer in time, or the stream is full. The
    message may be stored nevertheless; sending it again with the same ``msg_id`` does no harm.
    """
    # Waiting here rather than in the client's buffer: what waits there is sent after the caller has given up.
    await connection.wait_connected(connection.settings.request_timeout_s)
    try:
        try:
            ack = await connection.while_connected(_send(connection, message))
        except NoStreamResponseError:
            if not connection.settings.manage_streams:
                raise
            await ensure_streams(connection)  # the server lost its disk
            ack = await connection.while_connected(_send(connection, message))
    except (NatsError, OSError) as error:
        raise Unavailable(f"the bus did not accept a message on {message.subject}: {error}") from error
    return ack.seq


async def _send(connection: Connection, message: Outbound) -> PubAck:
    if not fits(connection, message):
        raise MaxPayloadError  # the client library counts no headers, and the server would end the connection
    timeout_s = connection.settings.request_timeout_s
    headers = _headers(connection, message)
    return await connection.jetstream.publish(message.subject, message.payload, timeout=timeout_s, headers=headers)


def _headers(connection: Connection, message: Outbound) -> dict[str, str] | None:
    """What goes with a message. The deletion of a key gets its time to live here, on every way to the bucket: whoever
    wrote it may have no connection, and so not know whether the server expires single messages.
    """
    headers = message.complete_headers
    if is_deletion(headers) and knows_ttl(connection):
        headers[TTL] = f"{DELETIONS_KEPT_S}s"
    return headers or None


async def publish_ahead(connection: Connection, messages: Sequence[Outbound]) -> int:
    """Send the first of ``messages`` without waiting in between, and return how many of them, from the first on, are
    stored.

    The caller goes on with the others. 0 means that the first was not stored; ``publish`` finds out why. What came
    behind one that was not stored may be stored, and comes again with it: give every message a ``msg_id``. Messages of
    one subject are never under way together, so their order holds whatever is lost on the way; that of all of them
    holds unless a stream refuses one and takes a later one. Raises Unavailable when there is no connection.
    """
    await connection.wait_connected(connection.settings.request_timeout_s)
    window = _window(connection, messages)
    return await connection.while_connected(_send_ahead(connection, window)) if window else 0


def _window(connection: Connection, messages: Sequence[Outbound]) -> Sequence[Outbound]:
    """The first messages, as many as may be under way together."""
    subjects: set[str] = set()
    total = 0
    for count, message in enumerate(messages):
        total += message.size
        full = count == AHEAD_MESSAGES or (count > 0 and total > AHEAD_BYTES)
        if full or message.subject in subjects or not fits(connection, message):
            return messages[:count]
        subjects.add(message.subject)
    return messages


async def _send_ahead(connection: Connection, window: Sequence[Outbound]) -> int:
    acks: list[asyncio.Future[PubAck]] = []
    try:
        async with asyncio.timeout(connection.settings.request_timeout_s):
            for message in window:
                headers = _headers(connection, message)
                acks.append(await connection.jetstream.publish_async(message.subject, message.payload, headers=headers))
            await asyncio.wait(acks)
    except (TimeoutError, NatsError, OSError) as error:
        log.info("bus.sending_ahead_interrupted", sent=len(acks), error=repr(error))
    stored = [ack.done() and not ack.cancelled() and ack.exception() is None for ack in acks]
    for ack in acks:
        ack.cancel()  # forgets it in the client library
    return stored.index(False) if False in stored else len(stored)
