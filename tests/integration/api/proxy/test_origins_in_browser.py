"""A hostile page in a task, in a real browser: it can neither use nor replace the login of whoever looks at it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from aiohttp import web

from deploy.local.servers.ports import free_port
from tests.harness.api import ApiProcess
from tests.harness.installed_client import interactive_python
from tests.harness.processes import REPOSITORY
from tests.integration.api.proxy.tasks import insert_service
from tests.integration.api.world import CLUSTER, World

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(180)]

PAGE = """<!doctype html><title>a page of a task</title><pre id="said"></pre><script>
const main = "MAIN";
const attempt = async (work) => { try { return await work(); } catch (error) { return `failed: ${error.name}`; } };
const domain = new URL(main).hostname.split(".").slice(1).join(".");
(async () => {
  const found = {};
  document.cookie = "auth=stolen; Path=/";
  document.cookie = "auth=stolen; Path=/api";
  const asked = {credentials: "include"};
  found.read = await attempt(async () => (await (await fetch(`${main}/api/v1/me`, asked)).json()).user.username);
  found.here = await attempt(async () => (await fetch("/api/v1/me", asked)).status);
  const body = JSON.stringify({name: "made by a page"});
  found.change = await attempt(async () =>
    (await fetch(`${main}/api/v1/workspaces`, {...asked, method: "POST", mode: "no-cors", body})).type);
  found.form = await attempt(() => {
    const form = document.createElement("form");
    form.method = "post"; form.target = "inner"; form.action = `${main}/api/v1/auth/logout`;
    const frame = document.createElement("iframe"); frame.name = "inner";
    document.body.append(frame, form);
    return new Promise((done) => { frame.addEventListener("load", () => done("sent")); form.submit(); });
  });
  found.socket = await attempt(() => new Promise((done) => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}${location.pathname}websocket`);
    socket.onmessage = () => { socket.close(); done("open"); };
    socket.onerror = () => done("refused");
  }));
  found.seen = document.cookie;
  document.getElementById("said").textContent = JSON.stringify(found);
})();
</script>"""


@asynccontextmanager
async def hostile_server(main: str) -> AsyncIterator[int]:
    """The port of a server in a task that wants to be somebody else."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/websocket"):
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.send_str("open")
            await socket.close()
            return socket
        reply = web.Response(text=PAGE.replace("MAIN", main), content_type="text/html")
        for cookie in ("auth=stolen; Path=/", "proxy_token=stolen; Path=/", "own=1; Path=/"):
            reply.headers.add("Set-Cookie", cookie)
        return reply

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextmanager
def api_at(world: World, port: int, *, tasks: dict[str, str]) -> Iterator[ApiProcess]:
    path = world.directory / f"origins-{port}.yaml"
    path.write_text(f"{CLUSTER}tasks: {json.dumps(tasks)}\n")
    http = {"host": "127.0.0.1", "port": port, "shutdown_grace_s": 1}
    with world.api(f"origins-{port}", cluster_config=str(path), http=http) as api:
        yield api


async def look(main: str, path: str, token: str, *flags: str) -> dict[str, Any]:
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs a browser: `apt-get install chromium chromium-driver`")
    command = (str(interactive_python()), "-m", "tests.e2e.interactive.hostile_page_client", main, path, token, *flags)
    environment = {**os.environ, "NO_PROXY": "*"}
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, cwd=REPOSITORY, env=environment)
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-2000:]
    seen: dict[str, Any] = json.loads(printed)
    return seen


@pytest.mark.parametrize(
    ("main_host", "tasks_host"),
    [("localhost", "tasks.localhost"), ("det.example.test", "tasks.det.example.test")],
    ids=["one machine", "two names of one domain"],
)
async def test_a_page_in_a_task_acts_for_nobody(world: World, main_host: str, tasks_host: str) -> None:
    port = free_port()
    main, tasks = f"http://{main_host}:{port}", f"http://{tasks_host}:{port}"
    addresses = {} if main_host == "localhost" else {"address": tasks, "main_address": main}
    with api_at(world, port, tasks=addresses) as api, api.client("admin") as admin:
        token = api.token("determined")
        async with hostile_server(main) as server:
            task = insert_service(world, server)
            seen = await look(main, f"/proxy/{task}/", token, "--host-resolver-rules=MAP *.test 127.0.0.1")
        assert seen["address"] == f"{tasks}/proxy/{task}/", "without the ticket"
        said = seen["said"]
        assert said["read"].startswith("failed"), "the answer is for pages of the main address"
        assert said["here"] == 501, "there is no api where pages of tasks are"
        assert said["socket"] == "open"
        assert "own=1" in said["seen"]
        assert seen["cookies"]["own"] == ["1", f"/proxy/{task}/"]
        assert seen["cookies"]["proxy_token"][0] != "stolen"
        assert seen["logins"] == [token]
        assert '"determined"' in seen["me"], "and still logged in"
        names = [each["name"] for each in admin.get("/api/v1/workspaces").json()["workspaces"]]
        assert "made by a page" not in names
