"""Whoever loses a role loses what is open to them by it: connections into tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import ClientPayloadError, ClientSession, WSMsgType
from sqlalchemy import delete

from libs.db.engine import Connection
from libs.db.tables.users import role_assignments
from tests.harness.api import ApiProcess
from tests.integration.api.access.persons import give
from tests.integration.api.proxy.servers import echo, http_server, tcp_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import CLUSTER, World

EDITOR, WORKSPACE, READER = 5, 1, 2


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "lost-rights.yaml"
    path.write_text(f"{CLUSTER}security: {{authz: {{type: rbac}}}}\n")
    with world.api("lost-rights", cluster_config=str(path), proxy={"recheck_interval_s": 0.2}) as api:
        yield api


@pytest.fixture
async def session(world: World, api: ApiProcess) -> AsyncIterator[ClientSession]:
    """Of somebody with a role in the workspace of the task."""
    await asyncio.to_thread(world.in_database, lambda connection: give(connection, READER, EDITOR, WORKSPACE))
    headers = {"Authorization": f"Bearer {await asyncio.to_thread(api.token, 'determined')}"}
    async with ClientSession(base_url=api.url, headers=headers) as session:
        yield session


async def take_role(world: World) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute(delete(role_assignments).where(role_assignments.c.workspace_id == WORKSPACE))

    await asyncio.to_thread(world.in_database, work)


async def test_a_websocket_into_a_notebook_ends(world: World, session: ClientSession) -> None:
    async with http_server() as port:
        task = await asyncio.to_thread(insert_service, world, port)
        async with session.ws_connect(f"/proxy/{task}/websocket") as socket:
            await socket.receive_json(timeout=10)
            await take_role(world)
            assert (await socket.receive(timeout=10)).type is WSMsgType.CLOSED
        async with session.get(f"/proxy/{task}/") as answer:
            assert answer.status == 404


async def test_a_connection_to_a_shell_ends(world: World, session: ClientSession) -> None:
    async with tcp_server(echo) as port:
        task = await asyncio.to_thread(lambda: insert_service(world, port, task_type="SHELL", proxy_tcp=True))
        async with session.ws_connect(f"/proxy/{task}/") as socket:
            await socket.send_bytes(b"here")
            assert await socket.receive_bytes(timeout=10) == b"here"
            await take_role(world)
            assert (await socket.receive(timeout=10)).type is WSMsgType.CLOSED


async def test_a_download_ends(world: World, session: ClientSession) -> None:
    async with http_server() as port:
        task = await asyncio.to_thread(insert_service, world, port)
        async with session.get(f"/proxy/{task}/many?bytes=10000000000") as answer:
            assert await answer.content.read(100)
            await take_role(world)
            async with asyncio.timeout(30):
                with pytest.raises(ClientPayloadError):
                    await answer.content.read()
