"""One server of the bus becomes three and one again: nothing that it keeps is lost, and nobody has to begin anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from deploy.bus_servers.preparation import prepare
from deploy.bus_servers.shrinking import shrink
from deploy.bus_servers.store import Store
from deploy.local.servers.nats import find_nats_server
from deploy.local.servers.ports import free_port
from deploy.local.servers.process import ChildProcess
from libs.bus import Bus, BusSettings, connect_bus
from libs.bus.connection import open_connection
from libs.bus.contents.snapshots import API, ask, stream_names
from libs.errors import Unavailable
from libs.events.accounts import accounts
from libs.events.subjects import SERVICE_LOG_STREAM, STREAMS

Result = TypeVar("Result")

NAMES: Final = ("bus-0", "bus-1", "bus-2")
KEPT: Final = (*STREAMS, SERVICE_LOG_STREAM)
EVENTS: Final = 300
LINES: Final = 120
ORDERS: Final = 5
ACKNOWLEDGED: Final = 40


class Servers:
    """Up to three servers with disks of their own, configured as the chart does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = [free_port() for _ in NAMES]
        self.routes = [free_port() for _ in NAMES]
        self.monitors = [free_port() for _ in NAMES]
        self._running: dict[int, ChildProcess] = {}

    def store(self, index: int) -> Store:
        return Store(self.folder / NAMES[index])

    def start(self, index: int, *, of: int) -> None:
        block = accounts(
            control_plane=[{"user": "services", "password": "a"}],
            subscribers={
                None: [{"user": "events", "password": "b"}],
                "grafana": [{"user": "grafana", "password": "c"}],
            },
        )
        config: dict[str, Any] = {
            "server_name": NAMES[index],
            "listen": f"127.0.0.1:{self.ports[index]}",
            "http": f"127.0.0.1:{self.monitors[index]}",
            "max_payload": 8 * 2**20,
            "jetstream": {"store_dir": str(self.store(index).root)},
            "accounts": block,
        }
        if of > 1:
            config["cluster"] = {
                "name": "resolute",
                "listen": f"127.0.0.1:{self.routes[index]}",
                "no_advertise": True,
                "routes": [f"nats://127.0.0.1:{port}" for port in self.routes],
            }
        file = self.folder / f"{NAMES[index]}.conf"
        file.write_text(json.dumps(config))
        process = ChildProcess([str(find_nats_server()), "-c", str(file)], log_path=self.folder / f"{index}.log")
        process.start()
        self._running[index] = process

    def stop(self, index: int) -> None:
        self._running.pop(index).stop(grace_s=30)

    def stop_all(self) -> None:
        for process in self._running.values():
            process.kill()

    async def prepare(self, index: int) -> None:
        await prepare(
            self.store(index),
            program=find_nats_server(),
            servers=NAMES,
            monitors=[f"http://127.0.0.1:{port}" for port in self.monitors],
            index=index,
        )

    def settings(self, *, replicas: int, only: int | None = None) -> BusSettings:
        ports = self.ports[:replicas] if only is None else [self.ports[only]]
        return BusSettings(
            url=",".join(f"nats://127.0.0.1:{port}" for port in ports),
            user="services",
            password="a",
            copy_events=True,
            subscribers=("grafana",),
            replicas=replicas,
            connect_timeout_s=20,
        )

    @asynccontextmanager
    async def bus(self, *, replicas: int) -> AsyncIterator[Bus]:
        async with connect_bus(self.settings(replicas=replicas)) as bus:
            await until_there(bus.ensure_streams)
            yield bus

    async def contents(self, *, replicas: int) -> dict[str, tuple[int, ...]]:
        """Stream -> messages, first and last sequence; and what the durable consumer has acknowledged."""
        async with open_connection(self.settings(replicas=replicas)) as connection:

            async def look() -> dict[str, tuple[int, ...]]:
                found: dict[str, tuple[int, ...]] = {}
                for name in KEPT:
                    state = (await ask(connection, f"{API}.STREAM.INFO.{name}"))["state"]
                    first = state["first_seq"] if state["messages"] else 0  # of nothing servers say 0 or 1
                    found[name] = (state["messages"], first, state["last_seq"])
                reader = await ask(connection, f"{API}.CONSUMER.INFO.LOGS.reader")
                found["reader"] = (reader["ack_floor"]["stream_seq"], reader["num_pending"])
                return found

            return await until_there(look)


async def until_there(call: Callable[[], Awaitable[Result]], *, timeout_s: float = 60) -> Result:
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.25)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    found = Servers(tmp_path)
    try:
        yield found
    finally:
        found.stop_all()


async def fill(servers: Servers) -> None:
    """Events, log batches of which some are stored already, orders, and a copy of the events for subscribers."""
    async with servers.bus(replicas=1) as bus:
        for number in range(EVENTS):
            await bus.publish(f"resolute.v1.experiment.{number}.changed", b"{}" * 50)
        for number in range(LINES):
            await bus.publish(f"logs.0.task-{number}", b"line " * 20)
        for number in range(ORDERS):
            await bus.publish(f"$KV.ORDERS.default.allocation-{number}", b"order")
    async with open_connection(servers.settings(replicas=1)) as connection:
        reader = {"durable_name": "reader", "ack_policy": "explicit", "deliver_policy": "all"}
        await ask(connection, f"{API}.CONSUMER.DURABLE.CREATE.LOGS.reader", {"stream_name": "LOGS", "config": reader})
        subscription = await connection.jetstream.pull_subscribe_bind("reader", "LOGS")
        for message in await subscription.fetch(ACKNOWLEDGED):
            await message.ack_sync()


async def grow(servers: Servers) -> None:
    """As the chart does it: the store of the first is converted, and the others join one by one."""
    servers.stop(0)
    await servers.prepare(0)
    servers.start(0, of=3)
    for index in (1, 2):
        async with asyncio.timeout(60):
            await servers.prepare(index)
        servers.start(index, of=3)


async def shrink_to_first(servers: Servers) -> int:
    async with open_connection(servers.settings(replicas=3)) as connection:
        return await shrink(connection, server=NAMES[0])


@pytest.mark.chaos
async def test_one_becomes_three_and_one_and_three_again(servers: Servers) -> None:
    servers.start(0, of=1)
    await fill(servers)
    before = await servers.contents(replicas=1)
    assert before["EVENTS"][0] == EVENTS
    assert before["LOGS"][0] == LINES - ACKNOWLEDGED
    assert before["reader"] == (ACKNOWLEDGED, LINES - ACKNOWLEDGED)

    await grow(servers)
    assert await servers.contents(replicas=3) == before
    async with servers.bus(replicas=3) as bus:
        await until_there(lambda: whole(servers))
        # A stream that is being spread may be without a leader for some seconds; whoever publishes tries again.
        await until_there(lambda: bus.publish("logs.0.more", b"line", msg_id="more"))

    after = await servers.contents(replicas=3)
    assert after["LOGS"] == (LINES - ACKNOWLEDGED + 1, before["LOGS"][1], before["LOGS"][2] + 1)

    assert await shrink_to_first(servers) == len(KEPT) + 2  # the copies of both subscribers
    for index in (2, 1, 0):
        servers.stop(index)
    servers.start(0, of=1)
    assert await servers.contents(replicas=1) == after

    # The others have lost their disks meanwhile, as the chart sees to.
    async with servers.bus(replicas=1) as bus:
        await bus.publish("logs.0.still-more", b"line")
    last = await servers.contents(replicas=1)
    for index in (1, 2):
        servers.store(index).root.rename(servers.folder / f"gone-{index}")
    await grow(servers)
    assert await servers.contents(replicas=3) == last


async def whole(servers: Servers) -> None:
    """Raises Unavailable until every stream has three copies that are up to date."""
    async with open_connection(servers.settings(replicas=3)) as connection:
        for name in await stream_names(connection):
            copies = (await ask(connection, f"{API}.STREAM.INFO.{name}"))["cluster"].get("replicas") or []
            if sum(copy["current"] for copy in copies) < 2:
                raise Unavailable(f"{name} has {copies}")
