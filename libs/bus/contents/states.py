"""How the streams stand: whether they are there, and how much they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from libs.bus.connection import Connection
from libs.errors import Unavailable
from libs.events.subjects import STREAMS

_NOT_FOUND: Final = 10059


class StreamStatus(Struct, frozen=True, kw_only=True):
    messages: int
    last_sequence: int
    """Of the newest message that the stream ever had; 0 for none."""
    behind: tuple[str, ...]
    """Servers with a copy that is not up to date."""
    server_time: datetime


async def stream_states(connection: Connection) -> dict[str, StreamStatus]:
    """Every stream and bucket of the control plane that is there, by its name.

    Raises Unavailable when the server does not answer, or has no JetStream.
    """
    await connection.wait_connected(connection.settings.request_timeout_s)
    found = {name: await stream_state(connection, name) for name in STREAMS}
    return {name: state for name, state in found.items() if state is not None}


async def stream_state(connection: Connection, stream: str) -> StreamStatus | None:
    """None when it is not there. Raises Unavailable."""
    timeout_s = connection.settings.request_timeout_s
    try:
        reply = await connection.while_connected(
            connection.client.request(f"$JS.API.STREAM.INFO.{stream}", timeout=timeout_s)
        )
    except NoRespondersError as error:
        raise Unavailable("the bus has no JetStream, or this user may not use it") from error
    except (NatsError, OSError) as error:
        raise Unavailable(f"the bus does not tell of {stream}: {error}") from error
    answer = json.loads(reply.data)
    if "error" in answer:
        if answer["error"].get("err_code") == _NOT_FOUND:
            return None
        raise Unavailable(f"the bus does not tell of {stream}: {answer['error'].get('description')}")
    return _read(answer)


def _read(answer: Mapping[str, Any]) -> StreamStatus:
    state = answer["state"]
    replicas = answer.get("cluster", {}).get("replicas") or ()
    return StreamStatus(
        messages=state["messages"],
        last_sequence=state["last_seq"],
        behind=tuple(replica["name"] for replica in replicas if not replica.get("current")),
        server_time=datetime.fromisoformat(answer["ts"]),
    )
