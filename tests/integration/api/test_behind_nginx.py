"""The unmodified client through Debian's nginx: as people have it, and as the documentation says."""

from __future__ import annotations

import asyncio
import os
import re
import tarfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import ClientPayloadError, ClientSession
from sqlalchemy import insert, update

from libs.bus import BusSettings, connect_bus
from libs.db.engine import Connection
from libs.db.tables.logs import log_streams, task_logs
from libs.db.tables.tasks import tasks
from libs.events import subjects
from libs.ids import new_uuid
from tests.builders import insert_allocation, insert_experiment, insert_task, insert_trial
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.harness.installed_client import client_python, det_path
from tests.harness.nginx import LISTEN, nginx
from tests.harness.pages.blocks import blocks_of, document
from tests.integration.api.proxy.servers import echo, http_server, tcp_server
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.updates.following import Follower
from tests.integration.api.world import CLUSTER, World

pytestmark = pytest.mark.slow

PLAIN = f"server {{ {LISTEN} location / {{ proxy_pass http://127.0.0.1:8080; }} }}"
SILENCE_S = 8
"""What nginx takes, in place of its 60 s; the api sends something each second."""
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def documented() -> str:
    """The configuration that the documentation gives."""
    (found,) = blocks_of(document("reverse-proxy"), "nginx")
    return found.text


@pytest.fixture(scope="module")
def api(world: World) -> Iterator[ApiProcess]:
    path = world.directory / "behind-nginx.yaml"
    path.write_text(f"{CLUSTER}feature_switches: [streaming_updates]\n")
    http = {"host": "127.0.0.1", "port": 0, "shutdown_grace_s": 1, "stream_keep_alive_s": 1}
    pings = {"proxy": {"ping_interval_s": 1}, "updates": {"ping_interval_s": 2.5}}
    with world.api("behind-nginx", cluster_config=str(path), http=http, **pings) as api:
        yield api


def before(api: ApiProcess, directory: Path, server: str, *, silence_s: int = 0) -> AbstractContextManager[str]:
    """The address of an nginx in front of an api; ``silence_s`` in place of the time-out that it has by default."""
    server = server.replace("http://127.0.0.1:8080", api.url)
    if silence_s:
        server = re.sub(r"proxy_(read|send)_timeout 1d;", "", server)
        server = server.replace("location / {", f"location / {{ proxy_read_timeout {silence_s}s;")
    return nginx(directory, server)


def test_large_contexts_need_the_documented_configuration(api: ApiProcess, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    (context / "data.bin").write_bytes(os.urandom(2_000_000))
    (context / "one.yaml").write_text("name: large\nentrypoint: python train.py\nsearcher: {name: single, metric: x}\n")
    create = ("experiment", "create", "--paused", str(context / "one.yaml"), str(context))
    with before(api, tmp_path / "plain", PLAIN) as url:
        ended = Det(url=url, home=tmp_path / "one").fails(*create)
        assert "413 Request Entity Too Large" in ended.out + ended.err
    with before(api, tmp_path / "documented", documented()) as url:
        det = Det(url=url, home=tmp_path / "two")
        number = det(*create).out.split()[-1]
        det("experiment", "download-model-def", number, "--output-dir", str(tmp_path))
    (packed,) = tmp_path.glob("*.tgz")
    with tarfile.open(packed) as archive:
        assert [member.size for member in archive if member.name.endswith("data.bin")] == [2_000_000]


@dataclass(frozen=True)
class Trial:
    ident: int
    task: str


def insert_running_trial(world: World) -> Trial:
    """With one line in its log."""

    async def work(connection: Connection) -> Trial:
        experiment = await insert_experiment(connection)
        trial = await insert_trial(connection, experiment_id=experiment, run_id=1)
        task = await insert_task(connection, trial_id=trial, experiment_id=experiment)
        await insert_allocation(connection, task_id=task, state="RUNNING")
        stream = {"stream_key": new_uuid(), "task_id": task, "contiguous": False, "next_seq": 1, "missing": []}
        await connection.execute(insert(log_streams).values(**stream, opened_at=NOW, written_at=NOW))
        await add_line(connection, task, b"before the silence\n")
        return Trial(trial, task)

    made: Trial = world.in_database(work)
    return made


async def add_line(connection: Connection, task: str, line: bytes) -> None:
    await connection.execute(
        insert(task_logs).values({"task_id": task, "ingested_at": NOW, "timestamp": NOW, "log": line})
    )


def end(world: World, trial: Trial) -> None:
    """A last line, and the end of the task, long ago."""

    async def work(connection: Connection) -> None:
        await add_line(connection, trial.task, b"after the silence\n")
        await connection.execute(
            update(tasks).where(tasks.c.task_id == trial.task).values(end_time=datetime(2020, 1, 1, tzinfo=UTC))
        )

    async def tell() -> None:
        async with connect_bus(BusSettings(url=world.bus_url, name="logs")) as bus:
            await bus.publish_core(subjects.log_stored(trial.task), b"")

    world.in_database(work)
    world.run_async(tell())


@asynccontextmanager
async def client_program(url: str, home: Path, *argv: str) -> AsyncIterator[Process]:
    environment = {**os.environ, "HOME": str(home), "DET_DEBUG_CONFIG_PATH": str(home), "DET_MASTER": url}
    environment["PYTHONUNBUFFERED"] = "1"
    process = await asyncio.create_subprocess_exec(*argv, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def wait_until_nginx_loses_patience(url: str, token: str, trial: Trial) -> None:
    """With a client to which nothing can be sent that means nothing."""
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
    async with (
        ClientSession(base_url=url, headers=headers) as session,
        session.get(f"/api/v1/trials/{trial.ident}/logs?follow=true") as answer,
    ):
        assert b"before the silence" in await answer.content.readline()
        with pytest.raises(ClientPayloadError):
            await answer.content.readline()


async def test_silent_logs_and_tunnels_go_on(api: ApiProcess, world: World, tmp_path: Path) -> None:
    """Logs through a plain ``proxy_pass``, websockets with what the documentation says but for the time-outs."""
    token = api.token("determined")
    trial = insert_running_trial(world)
    stack = AsyncExitStack()
    async with asyncio.timeout(240), stack:
        enter = stack.enter_async_context
        plain = stack.enter_context(before(api, tmp_path / "plain", PLAIN, silence_s=SILENCE_S))
        proxy = stack.enter_context(before(api, tmp_path / "proxy", documented(), silence_s=SILENCE_S))

        following = ("trial", "logs", "-f", str(trial.ident))
        log = await enter(client_program(plain, tmp_path / "home", str(det_path()), *following))
        assert log.stdout is not None
        shell = insert_service(world, await enter(tcp_server(echo)), proxy_tcp=True, unauthenticated=True)
        tunnel_argv = (str(client_python()), "-m", "determined.cli.tunnel", proxy, shell)
        tunnel = await enter(client_program(proxy, tmp_path / "home", *tunnel_argv))
        assert tunnel.stdin is not None
        assert tunnel.stdout is not None
        notebook = insert_service(world, await enter(http_server()))
        session = await enter(ClientSession(base_url=proxy, headers={"Authorization": f"Bearer {token}"}))
        kernel = await enter(session.ws_connect(f"/proxy/{notebook}/websocket"))
        updates = await enter(session.ws_connect("/stream"))

        assert b"before the silence" in await log.stdout.readline()
        tunnel.stdin.write(b"before")
        assert await tunnel.stdout.readexactly(6) == b"before"
        assert (await kernel.receive_json())["target"]
        follower = await Follower(updates).subscribe(models={"workspace_ids": [1]})
        hearing = [asyncio.create_task(kernel.receive_str()), asyncio.create_task(follower.next(240))]
        await asyncio.gather(*(wait_until_nginx_loses_patience(url, token, trial) for url in (plain, proxy)))
        assert not any(task.done() for task in hearing)

        tunnel.stdin.write(b"after")
        assert await tunnel.stdout.readexactly(5) == b"after"
        await kernel.send_str("after")
        assert await hearing[0] == "after"
        model = await session.post("/api/v1/models", json={"name": "after"})
        assert model.ok, await model.text()
        assert (await hearing[1])["model"]["name"] == "after"
        end(world, trial)
        out, err = await log.communicate()
        assert (log.returncode, b"after the silence" in out) == (0, True), err
