"""Following updates in tests: a websocket with what it was told, and the client of Determined."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from tests.harness.api import ApiProcess
from tests.harness.installed_client import client_python

SINGLE = {"project": "projects", "model": "models", "modelversion": "modelversions"}


@dataclass
class Follower:
    """What one subscriber knows, as it would remember it."""

    socket: ClientWebSocketResponse
    there: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: {kind: {} for kind in SINGLE.values()})
    messages: list[dict[str, Any]] = field(default_factory=list)
    syncs: int = 0

    async def subscribe(self, known: dict[str, str] | None = None, **specs: dict[str, Any]) -> Self:
        """Ask, and wait until all is said."""
        self.syncs += 1
        ident = str(self.syncs)
        await self.socket.send_json({"sync_id": ident, "known": known or {}, "subscribe": specs})
        while (message := await self.next()) != {"sync_id": ident, "complete": True}:
            assert "sync_id" not in message or message == {"sync_id": ident, "complete": False}
        return self

    async def next(self, timeout_s: float = 10) -> dict[str, Any]:
        message = await self.socket.receive(timeout=timeout_s)
        assert message.type is WSMsgType.TEXT, message
        told: dict[str, Any] = json.loads(message.data)
        self.messages.append(told)
        for key, value in told.items():
            if key in SINGLE:
                self.there[SINGLE[key]][value["id"]] = value
            elif key.endswith("_deleted"):
                for ident in expanded(value):
                    self.there[key.removesuffix("_deleted")].pop(ident, None)
        return told

    async def until(self, condition: Any, timeout_s: float = 10) -> None:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await self.next(timeout_s)

    def ids(self, kind: str) -> set[int]:
        return set(self.there[kind])

    async def closed(self, timeout_s: float = 10) -> tuple[int | None, str]:
        """Code and reason of the close."""
        while True:
            message = await self.socket.receive(timeout=timeout_s)
            if message.type is not WSMsgType.TEXT:
                assert message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED), message
                return self.socket.close_code, message.extra or ""


def expanded(ranges: str) -> list[int]:
    found: list[int] = []
    for part in ranges.split(",") if ranges else ():
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


@asynccontextmanager
async def following(api: ApiProcess, token: str) -> AsyncIterator[Follower]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        ClientSession(base_url=api.url, headers=headers) as session,
        session.ws_connect("/stream", max_msg_size=0) as socket,
    ):
        yield Follower(socket)


SCRIPT = """
import json, sys
from determined.common import api, streams
from determined.common.api import authentication, certs
from determined.common.streams import wire, _client
master, token, specs = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
session = api.Session(master, "admin", token, None)
stream = streams.Stream(streams.LomondStreamWebSocket(session))
made = {"projects": _client.ProjectSpec, "models": _client.ModelSpec, "model_versions": _client.ModelVersionSpec}
stream.subscribe(sync_id="mine", **{name: made[name](**spec) for name, spec in specs.items()})
for event in stream:
    print(json.dumps([type(event).__name__, event.to_json()]), flush=True)
"""


class ClientStream:
    """The unmodified client of Determined in a process of its own; its events, one by one."""

    def __init__(self, url: str, token: str, **specs: dict[str, Any]) -> None:
        argv = [str(client_python()), "-c", SCRIPT, url, token, json.dumps(specs)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    async def next(self, timeout_s: float = 30) -> tuple[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(timeout_s):
            line = await asyncio.to_thread(self.process.stdout.readline)
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(f"the client has ended: {self.process.stderr.read().decode()}")
        kind, value = json.loads(line)
        return kind, value

    async def synced(self) -> list[tuple[str, Any]]:
        """Everything until all is said."""
        events = [await self.next()]
        while events[-1] != ("Sync", {"sync_id": "mine", "complete": True}):
            events.append(await self.next())
        return events

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


class Balancer:
    """One address for a replica that may change; connections end with their replica."""

    def __init__(self) -> None:
        self.target = ""
        self.url = ""

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.target.removeprefix("http://").partition(":")
        try:
            above, below = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, below), self._pump(above, writer))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
