"""Probes whether the bus stores what it is given, by a write to each stream.

A server that meets a full disk goes on refusing to write to the streams it met it in, also when there is space again,
until it is started anew; meanwhile it answers, and looks healthy. The messages that are written here are on subjects
that nobody reads, and the server forgets them after a second (NATS 2.11; an older one is asked about buckets only).
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from libs.bus.connection import Connection
from libs.bus.headers import TTL
from libs.bus.streams import checked_streams
from libs.errors import Unavailable
from libs.events.subjects import storage_check

log = structlog.get_logger()

TIMEOUT_S: Final = 1.0
REMEMBERED_S: Final = 2.0
"""How long an answer is good for others who ask: anybody may, as often as he likes."""

_FULL_BY_ITS_LIMIT: Final = 10077


class StorageProbe:
    """What the last writes came to; whoever asks at the same time shares them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asking = asyncio.Lock()
        self._refused: tuple[str, ...] = ()
        self._until = 0.0

    async def refused(self) -> tuple[str, ...]:
        """Names of the streams that do not take messages; all when the server does not answer."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() >= self._until:
                self._refused = await _refused(self._connection)
                self._until = loop.time() + REMEMBERED_S
            return self._refused


async def _refused(connection: Connection) -> tuple[str, ...]:
    streams = checked_streams(connection)
    if not connection.client.is_connected:
        return streams
    taken = await asyncio.gather(*(_takes(connection, stream) for stream in streams))
    return tuple(stream for stream, is_taken in zip(streams, taken, strict=True) if not is_taken)


async def _takes(connection: Connection, stream: str) -> bool:
    call = connection.jetstream.publish(storage_check(stream), b"", timeout=TIMEOUT_S, headers={TTL: "1s"})
    try:
        await connection.while_connected(call)
    except APIError as error:
        if error.err_code == _FULL_BY_ITS_LIMIT:
            return True  # as full as it may be: that is for its readers to change
        log.warning("bus.not_stored", stream=stream, error=str(error))
        return False
    except (NatsError, OSError, Unavailable) as error:
        log.warning("bus.not_stored", stream=stream, error=str(error))
        return False
    return True
