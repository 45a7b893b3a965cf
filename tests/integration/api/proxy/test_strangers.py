"""Callers without any token: shells let them in as far as sshd, in bounds, unless a setting says otherwise."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest
from aiohttp import ClientSession, WSServerHandshakeError
from sqlalchemy import select

from deploy.local.servers.ports import free_port
from libs.db.tables.interactive import interactive_tasks
from services.api.proxy.activity import WRITE_EVERY_S
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.harness.waiting import eventually
from tests.integration.api.proxy.servers import echo, http_server, tcp_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import World

METRIC = "resolute_api_proxy_connections_without_token"


async def metric(port: int, name: str) -> float:
    async with httpx.AsyncClient(timeout=30) as client:
        text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    [value] = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(value)


async def test_connections_of_strangers_are_bounded_by_address_and_counted(world: World) -> None:
    async with tcp_server(echo) as port:
        shell = insert_service(world, port, task_type="SHELL", proxy_tcp=True, unauthenticated=True)
        status_port = free_port()
        telemetry = {"log_format": "json", "status_port": status_port, "status_host": "127.0.0.1"}
        with world.api("bounded", proxy={"strangers_per_address": 2}, telemetry=telemetry) as api:
            known = {"Authorization": f"Bearer {api.token('determined')}"}
            async with ClientSession(base_url=api.url) as session:
                first = await session.ws_connect(f"/proxy/{shell}/")
                async with session.ws_connect(f"/proxy/{shell}/"):
                    with pytest.raises(WSServerHandshakeError) as refused:
                        await session.ws_connect(f"/proxy/{shell}/")
                    assert refused.value.status == 503
                    async with session.ws_connect(f"/proxy/{shell}/", headers=known) as of_user:
                        await of_user.send_bytes(b"has a token")
                        assert await of_user.receive_bytes(timeout=30) == b"has a token"
                    assert await metric(status_port, METRIC) == 2
                await first.close()

                async def none_left() -> bool:
                    return await metric(status_port, METRIC) == 0

                await eventually(none_left, what="both have ended")
                assert await metric(status_port, 'resolute_api_proxy_without_token_total{outcome="refused"}') == 1
                async with session.ws_connect(f"/proxy/{shell}/"):
                    pass


async def test_a_setting_demands_a_token_of_everybody(world: World) -> None:
    async with tcp_server(echo) as port:
        shell = insert_service(world, port, task_type="SHELL", proxy_tcp=True, unauthenticated=True)
        with world.api("demanding", proxy={"demand_token": True}) as api:
            known = {"Authorization": f"Bearer {api.token('determined')}"}
            async with ClientSession(base_url=api.url) as session:
                with pytest.raises(WSServerHandshakeError) as refused:
                    await session.ws_connect(f"/proxy/{shell}/")
                assert refused.value.status == 401
                async with session.ws_connect(f"/proxy/{shell}/", headers=known) as socket:
                    await socket.send_bytes(b"in")
                    assert await socket.receive_bytes(timeout=30) == b"in"


async def test_what_strangers_ask_for_keeps_no_notebook_alive(world: World, api: ApiProcess, token: str) -> None:
    async with http_server() as port:
        notebook = insert_service(world, port)
        open_to_all = insert_service(world, port, unauthenticated=True)
        used = insert_service(world, port)

        def last_active(task: str) -> object:
            query = select(interactive_tasks.c.last_active_at).where(interactive_tasks.c.task_id == task)
            return world.in_database(lambda connection: connection.scalar(query))

        known = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=api.url, timeout=30, verify=NO_TLS) as client:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "token wrong"}):
                assert (await client.get(f"/proxy/{notebook}/", headers=headers)).status_code == 401
                assert (await client.get(f"/proxy/{open_to_all}/", headers=headers)).status_code == 200
            assert (await client.get(f"/proxy/{used}/", headers=known)).status_code == 200
        await eventually(lambda: asyncio.to_thread(last_active, used), timeout_s=4 * WRITE_EVERY_S, what="use is noted")
        assert last_active(notebook) is None
        assert last_active(open_to_all) is None
