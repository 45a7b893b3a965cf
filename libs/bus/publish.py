"""Putting a message into a stream, and knowing that it is there."""

from __future__ import annotations

from collections.abc import Mapping

from nats.errors import Error as NatsError
from nats.js.api import PubAck
from nats.js.errors import NoStreamResponseError

from libs.bus.connection import Connection
from libs.bus.headers import MSG_ID
from libs.bus.streams import ensure_streams
from libs.errors import Unavailable


async def publish(
    connection: Connection,
    subject: str,
    payload: bytes,
    *,
    msg_id: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> int:
    """Return the sequence of the message once its stream has stored it, or had stored it before under ``msg_id``.

    Raises Unavailable when that is not known: there is no connection, no answer in time, or the stream is full. The
    message may be stored nevertheless; sending it again with the same ``msg_id`` does no harm.
    """
    # Waiting here rather than in the client's buffer: what waits there is sent after the caller has given up.
    await connection.wait_connected(connection.settings.request_timeout_s)
    complete = dict(headers or {})
    if msg_id is not None:
        complete[MSG_ID] = msg_id
    try:
        try:
            ack = await connection.while_connected(_send(connection, subject, payload, complete))
        except NoStreamResponseError:
            if not connection.settings.manage_streams:
                raise
            await ensure_streams(connection)  # the server lost its disk
            ack = await connection.while_connected(_send(connection, subject, payload, complete))
    except (NatsError, OSError) as error:
        raise Unavailable(f"the bus did not accept a message on {subject}: {error}") from error
    return ack.seq


async def _send(connection: Connection, subject: str, payload: bytes, headers: dict[str, str]) -> PubAck:
    timeout_s = connection.settings.request_timeout_s
    return await connection.jetstream.publish(subject, payload, timeout=timeout_s, headers=headers or None)
