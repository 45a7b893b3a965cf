"""The tunnels of the unmodified client, and the pages that its addresses lead to."""

from __future__ import annotations

import asyncio
import os
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, quote_plus

import httpx

from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.harness.installed_client import client_python
from tests.harness.no_tls import NO_TLS
from tests.harness.waiting import eventually
from tests.integration.api.proxy.servers import echo, tcp_server
from tests.integration.api.proxy.tasks import insert_service, insert_trial_with_ports
from tests.integration.api.world import World


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def tunnel(api: ApiProcess, home: Path, *arguments: str) -> AsyncIterator[Process]:
    environment = {**os.environ, "HOME": str(home), "DET_DEBUG_CONFIG_PATH": str(home), "DET_MASTER": api.url}
    command = (str(client_python()), "-m", "determined.cli.tunnel", *arguments)
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdin=PIPE, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_tunnel_bridges_stdin_and_stdout_without_a_login(world: World, api: ApiProcess, tmp_path: Path) -> None:
    async with tcp_server(echo) as port:
        shell = insert_service(world, port, proxy_tcp=True, unauthenticated=True)
        async with tunnel(api, tmp_path, api.url, shell) as process, asyncio.timeout(60):
            assert process.stdin is not None
            assert process.stdout is not None
            sent = os.urandom(300_000)
            process.stdin.write(sent)
            assert await process.stdout.readexactly(len(sent)) == sent
            process.stdin.close()
            assert await process.wait() == 0


async def test_a_tunnel_listens_for_connections_to_a_port_of_a_trial(
    world: World, api: ApiProcess, det: Det, tmp_path: Path
) -> None:
    async with tcp_server(echo) as port:
        trial = insert_trial_with_ports(world, [{"proxy_port": port, "proxy_tcp": True}])
        local = free_port()
        home = Path(det.home)
        async with tunnel(api, home, "--listener", str(local), "--auth", api.url, f"{trial}:{port}"):

            async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
                try:
                    return await asyncio.open_connection("127.0.0.1", local)
                except OSError:
                    return None

            one, other = await eventually(connect, timeout_s=60, every_s=0.2), await connect()
            for connection in (one, other):
                assert connection is not None
                reader, writer = connection
                sent = os.urandom(100_000)
                writer.write(sent)
                assert await asyncio.wait_for(reader.readexactly(len(sent)), 60) == sent
                writer.close()


async def test_addresses_that_the_client_prints_lead_to_a_page(api: ApiProcess) -> None:
    wait = "/det/wait/jupyter-lab/1?eventUrl=/proxy/1/?token=t/x&serviceAddr=/proxy/1/?token=t"
    interactive = f"/det/interactive/1/jupyter-lab/{quote('a notebook (x)')}/pool/{quote_plus(wait)}?a=false"
    async with httpx.AsyncClient(base_url=api.url, timeout=30, verify=NO_TLS) as client:
        for path in (wait, interactive, "/det/login?redirect=/det"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert "script-src 'sha256-" in answer.headers["content-security-policy"]
        assert "WebUI is not part" in (await client.get("/det/anything")).text
