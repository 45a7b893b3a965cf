"""Streams as files: everything a stream holds with its sequences, and its consumers with what they have acknowledged.

Source: JetStream API ``STREAM.SNAPSHOT`` and ``STREAM.RESTORE``, https://docs.nats.io/reference/reference-protocols/nats_api_reference
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from libs.bus.connection import Connection, apart
from libs.errors import Unavailable

API: Final = "$JS.API"
CHUNK: Final = 128 * 1024
LISTED: Final = 256
"""Consumers in one answer of the server."""
_SILENCE_S: Final = 60.0
"""How long a server may say nothing in the middle of a snapshot, or take for the last step of restoring one."""


class StreamSnapshot(Struct, frozen=True, kw_only=True):
    config: dict[str, Any]
    state: dict[str, Any]
    """Messages, first and last sequence, number of consumers and so on, in the words of the server."""
    file: Path
    """What the server made of the stream, for a server to read."""


async def ask(connection: Connection, subject: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer of the JetStream API. Raises Unavailable when there is none, or the server refuses."""
    question = json.dumps(body).encode() if body else b""
    try:
        reply = await apart(connection.client.request(subject, question, timeout=connection.settings.request_timeout_s))
    except (NatsError, OSError) as error:
        raise Unavailable(f"the bus does not answer {subject}: {error}") from error
    answer: dict[str, Any] = json.loads(reply.data)
    if "error" in answer:
        raise Unavailable(f"the bus refuses {subject}: {answer['error'].get('description')}")
    return answer


async def stream_names(connection: Connection) -> list[str]:
    """All streams of the account. Raises Unavailable."""
    answer = await ask(connection, f"{API}.STREAM.NAMES")
    return list(answer["streams"] or ())


async def consumers_of(connection: Connection, stream: str) -> list[dict[str, Any]]:
    """Consumers of a stream in the words of the server, the first ``LISTED`` of them. Raises Unavailable."""
    answer = await ask(connection, f"{API}.CONSUMER.LIST.{stream}")
    return list(answer["consumers"] or ())


async def take_snapshot(connection: Connection, stream: str, file: Path) -> StreamSnapshot:
    """Write a stream with its consumers into ``file``. Raises Unavailable, also when it does not arrive whole."""
    arrived: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = connection.client.new_inbox()
    subscription = await connection.client.subscribe(inbox, cb=arrived.put)
    try:
        wanted = {"deliver_subject": inbox, "no_consumers": False, "chunk_size": CHUNK}
        answer = await ask(connection, f"{API}.STREAM.SNAPSHOT.{stream}", wanted)
        with file.open("wb") as out:
            while True:
                async with asyncio.timeout(_SILENCE_S):
                    chunk = await arrived.get()
                if not chunk.data:
                    break
                out.write(chunk.data)
                if chunk.reply:  # the server sends on when it knows that this has arrived
                    await chunk.respond(b"")
    except TimeoutError as error:
        raise Unavailable(f"the snapshot of {stream} ended before it was whole") from error
    finally:
        await subscription.unsubscribe()
    if chunk.headers and chunk.headers.get("Status", "204") not in ("204", "200"):
        raise Unavailable(f"the snapshot of {stream} ended with {chunk.headers}")
    return StreamSnapshot(config=answer["config"], state=answer["state"], file=file)


async def restore_snapshot(connection: Connection, snapshot: StreamSnapshot, config: Mapping[str, Any]) -> None:
    """Make a stream anew that does not exist, with this configuration. Raises Unavailable."""
    name = snapshot.config["name"]
    wanted = {"config": dict(config), "state": snapshot.state}
    answer = await ask(connection, f"{API}.STREAM.RESTORE.{name}", wanted)
    try:
        with snapshot.file.open("rb") as content:
            while chunk := content.read(CHUNK):
                await apart(connection.client.request(answer["deliver_subject"], chunk, timeout=_SILENCE_S))
        reply = await apart(connection.client.request(answer["deliver_subject"], b"", timeout=_SILENCE_S))
    except (NatsError, OSError) as error:
        raise Unavailable(f"{name} could not be restored: {error}") from error
    done = json.loads(reply.data)
    if "error" in done:
        raise Unavailable(f"{name} could not be restored: {done['error'].get('description')}")
