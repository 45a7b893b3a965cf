"""Every message of a stream, without taking part in its work: no consumer is made, nothing is acknowledged.

A stream that is a work queue allows no further reader beside the one that works. Messages are therefore got one by
one, by their number.
Source: NATS ADR-31 (getting messages), JetStream API ``STREAM.MSG.GET``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from email import parser
from typing import Any, Final

from msgspec import Struct
from nats.errors import Error as NatsError

from libs.bus.connection import Connection
from libs.errors import Unavailable

_NOT_FOUND: Final = 10037
_STATUS_LINE: Final = b"NATS/1.0\r\n"


class StoredMessage(Struct, frozen=True, kw_only=True):
    subject: str
    data: bytes
    headers: dict[str, str]
    sequence: int


async def stored_messages(connection: Connection, stream: str, *, last: int) -> AsyncIterator[StoredMessage]:
    """The messages of ``stream``, in order, up to the sequence ``last``. Raises Unavailable."""
    sequence = 0
    while sequence < last:
        message = await _next(connection, stream, sequence + 1)
        if message is None or message.sequence > last:
            return
        yield message
        sequence = message.sequence


async def _next(connection: Connection, stream: str, sequence: int) -> StoredMessage | None:
    """The first message that has this sequence or a later one."""
    timeout_s = connection.settings.request_timeout_s
    await connection.wait_connected(timeout_s)
    wanted = json.dumps({"seq": sequence, "next_by_subj": ">"}).encode()
    try:
        reply = await connection.while_connected(
            connection.client.request(f"$JS.API.STREAM.MSG.GET.{stream}", wanted, timeout=timeout_s)
        )
    except (NatsError, OSError) as error:
        raise Unavailable(f"the bus does not show what {stream} holds: {error}") from error
    answer: dict[str, Any] = json.loads(reply.data)
    if "error" in answer:
        if answer["error"].get("err_code") == _NOT_FOUND:
            return None
        raise Unavailable(f"the bus does not show what {stream} holds: {answer['error'].get('description')}")
    found = answer["message"]
    return StoredMessage(
        subject=found["subject"],
        data=base64.b64decode(found.get("data", "")),
        headers=_headers(base64.b64decode(found.get("hdrs", ""))),
        sequence=found["seq"],
    )


def _headers(raw: bytes) -> dict[str, str]:
    return dict(parser.BytesHeaderParser().parsebytes(raw.removeprefix(_STATUS_LINE)).items())
