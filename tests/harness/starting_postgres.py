"""A PostgreSQL that is starting up whenever a test says so: a real one, behind a door that refuses as it does then."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from libs.db.connecting.settings import asyncpg_url
from libs.run_until_first_exits import end

_SSL_REQUEST = 80877103
_REFUSAL = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"


class StartingPostgres:
    """Passes connections on to the server behind ``url``, and refuses them while it is starting (SQLSTATE 57P03).

    Source: https://www.postgresql.org/docs/current/protocol-message-formats.html
    """

    def __init__(self, url: str) -> None:
        self._behind = urlsplit(asyncpg_url(url))
        self._open: dict[asyncio.StreamWriter, asyncio.Event] = {}
        """Connections from clients, and what says that one has ended."""
        self._admits: int | None = None
        self.refused = 0
        """Connections that were refused so far."""
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[StartingPostgres]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = self._behind.netloc.rpartition("@")[0]
        self.url = self._behind._replace(netloc=f"{user}@127.0.0.1:{port}").geturl()
        try:
            yield self
        finally:
            server.close()
            await self._cut_off()

    async def starts_up(self, *, after_connections: int = 0) -> None:
        """From now on, or after so many more connections, refuse; those that are open end with the old server."""
        self._admits = after_connections
        await self._cut_off()

    def has_started(self) -> None:
        self._admits = None

    async def _cut_off(self) -> None:
        cut = dict(self._open)
        for writer in cut:
            writer.transport.abort()
        for ended in cut.values():
            await ended.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = self._open[writer] = asyncio.Event()
        try:
            if self._admits == 0:
                await self._refuse(reader, writer)
                return
            if self._admits is not None:
                self._admits -= 1
            await self._pass_on(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side has left, and the other hears of it
        finally:
            writer.close()
            del self._open[writer]
            ended.set()

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await _first_message(reader) == _SSL_REQUEST:
            writer.write(b"N")
            await _first_message(reader)
        writer.write(b"E" + struct.pack("!I", len(_REFUSAL) + 4) + _REFUSAL)
        await writer.drain()
        self.refused += 1

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(self._behind.hostname, self._behind.port)
        ways = [asyncio.create_task(_pump(reader, behind_writer)), asyncio.create_task(_pump(behind_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(*ways)
            behind_writer.close()


async def _first_message(reader: asyncio.StreamReader) -> int:
    """Read a message that has no type; returns the code it begins with."""
    (size,) = struct.unpack("!I", await reader.readexactly(4))
    (code,) = struct.unpack("!I", (await reader.readexactly(size - 4))[:4])
    return int(code)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
