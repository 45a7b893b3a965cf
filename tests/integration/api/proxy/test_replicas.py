"""Several replicas of the api: each leads to every task, and the death of one is the end of its connections only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from aiohttp import ClientSession, WSMsgType
from sqlalchemy import func, update

from libs.db.engine import Connection
from libs.db.outbox import announce
from libs.db.tables.tasks import tasks
from libs.events.changes import AllocationChanged
from services.api.proxy.services import REMEMBER_S
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.harness.no_tls import NO_TLS
from tests.harness.waiting import eventually
from tests.integration.api.proxy.servers import echo, http_server, tcp_server
from tests.integration.api.proxy.tasks import insert_service, insert_trial_with_ports
from tests.integration.api.proxy.test_with_client import free_port, tunnel
from tests.integration.api.world import World


@pytest.fixture
def other(world: World) -> Iterator[ApiProcess]:
    """The second replica; tests kill it."""
    with world.api("other") as api:
        yield api


def port_of(api: ApiProcess) -> int:
    return int(api.url.rpartition(":")[2])


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await echo(reader, writer)
    except ConnectionError:
        pass  # the end of one side is the end of the other
    finally:
        writer.close()


@asynccontextmanager
async def balancer(*replicas: ApiProcess) -> AsyncIterator[str]:
    """The address of something in front of replicas that connects clients to the first of them that is there."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for replica in replicas:
            try:
                theirs = await asyncio.open_connection("127.0.0.1", port_of(replica))
            except ConnectionError:
                continue
            await asyncio.gather(copy(reader, theirs[1]), copy(theirs[0], writer))
            return
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_each_replica_leads_to_each_task_and_its_connections_live_without_the_other(
    world: World, api: ApiProcess, other: ApiProcess
) -> None:
    headers = {"Authorization": f"Bearer {api.token('determined')}"}
    async with (
        tcp_server(echo) as tcp,
        http_server() as http,
        ClientSession(api.url, headers=headers) as here,
        ClientSession(other.url, headers=headers) as there,
    ):
        shell, notebook = insert_service(world, tcp, proxy_tcp=True), insert_service(world, http)
        sockets = {session: await session.ws_connect(f"/proxy/{shell}/") for session in (here, there)}
        kernels = {session: await session.ws_connect(f"/proxy/{notebook}/websocket") for session in (here, there)}
        for session in (here, there):
            async with session.get(f"/proxy/{notebook}/page") as answer:
                assert answer.status == 200
            await sockets[session].send_bytes(b"both")
            assert await sockets[session].receive_bytes(timeout=60) == b"both"
            await kernels[session].receive_json(timeout=60)

        other.process.kill()
        for connection in (sockets[there], kernels[there]):
            assert (await connection.receive(timeout=60)).type in (WSMsgType.CLOSED, WSMsgType.ERROR)
        await sockets[here].send_bytes(b"one")
        assert await sockets[here].receive_bytes(timeout=60) == b"one"
        await kernels[here].send_str("one")
        assert await kernels[here].receive_str(timeout=60) == "one"
        async with here.ws_connect(f"/proxy/{shell}/") as again:
            await again.send_bytes(b"again")
            assert await again.receive_bytes(timeout=60) == b"again"


async def test_the_end_of_a_task_reaches_each_replica(world: World, api: ApiProcess, other: ApiProcess) -> None:
    headers = {"Authorization": f"Bearer {api.token('determined')}"}
    async with http_server() as port, httpx.AsyncClient(headers=headers, timeout=30, verify=NO_TLS) as client:
        task = insert_service(world, port)

        async def statuses() -> list[int]:
            return [(await client.get(f"{replica.url}/proxy/{task}/")).status_code for replica in (api, other)]

        assert await statuses() == [200, 200]

        async def end(connection: Connection) -> None:
            await connection.execute(update(tasks).where(tasks.c.task_id == task).values(end_time=func.now()))
            await announce(connection, AllocationChanged(allocation_id=f"{task}.1", task_id=task, what="state"))

        world.in_database(end)

        async def has_ended() -> bool:
            return await statuses() == [404, 404]

        await eventually(has_ended, timeout_s=REMEMBER_S / 2, what="both have heard of it")


async def test_a_tunnel_of_the_client_goes_on_with_another_replica(
    world: World, api: ApiProcess, other: ApiProcess, tmp_path: Path
) -> None:
    """Connections through the replica that is killed break; the next one through the same tunnel works."""
    async with tcp_server(echo) as port, balancer(other, api) as url:
        trial = insert_trial_with_ports(world, [{"proxy_port": port, "proxy_tcp": True}])
        local = free_port()
        # The balancer is in this event loop.
        await asyncio.to_thread(Det(url=url, home=tmp_path), "user", "login", "determined", answers=[""])
        async with tunnel(other, tmp_path, "--listener", str(local), "--auth", url, f"{trial}:{port}"):

            async def says(word: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
                try:
                    reader, writer = await asyncio.open_connection("127.0.0.1", local)
                    writer.write(word)
                    await asyncio.wait_for(reader.readexactly(len(word)), 20)
                except (OSError, asyncio.IncompleteReadError):
                    return None
                return reader, writer

            reader, writer = await eventually(lambda: says(b"before"), every_s=0.2)
            other.process.kill()

            async def is_broken() -> bool:
                writer.write(b"lost")  # the client notices only when it has something to send
                try:
                    return await asyncio.wait_for(reader.read(1000), 0.2) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True

            await eventually(is_broken)
            writer.close()
            again = await eventually(lambda: says(os.urandom(1000)), every_s=0.2)
            again[1].close()
