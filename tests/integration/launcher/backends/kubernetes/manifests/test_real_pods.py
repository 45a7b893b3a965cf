"""Pods whose containers really run: what the manifests promise, seen from inside.

Needs a cluster with a kubelet, and an image that its nodes have, with Python and the ``determined`` package.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from deploy.local.kubernetes import find_address
from libs.events.orders import BindMount, Environment, Owner, TaskFile
from services.launcher.backends.kubernetes.settings import ShipperSettings
from services.launcher.container.settings import TaskSettings
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import LauncherHarness, cluster, task
from tests.integration.launcher.fakes import FakeIntake, FakeMaster, serve_intake, serve_master

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet, pytest.mark.oldest]


@pytest.fixture(scope="session")
def image() -> str:
    name = os.environ.get("RESOLUTE_TEST_IMAGE")
    if not name:
        pytest.skip("needs nodes that run containers: set RESOLUTE_TEST_IMAGE to an image that they have")
    return name


@asynccontextmanager
async def reachable(url: str) -> AsyncIterator[str]:
    """A URL under which pods reach a server of ours: RESOLUTE_TEST_HOST is this machine as they see it.

    Without it, what ``resolute up --kubeconfig`` would take.
    """
    target = urlsplit(url)
    host = os.environ.get("RESOLUTE_TEST_HOST") or find_address(Path(os.environ["KUBECONFIG"]))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(pump(reader, back), pump(there, writer))

    async with await asyncio.start_server(relay, host, 0) as server:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"


class RealHarness:
    def __init__(self, harness: LauncherHarness, intake: FakeIntake, master: FakeMaster, image: str) -> None:
        self.harness = harness
        self.intake = intake
        self.master = master
        self.image = image

    async def run(self, script: str, **fields: Any) -> str:
        environment = fields.pop("environment", {})
        spec = task(
            argv=(script,),
            owner=fields.pop("owner", Owner(username="alice")),
            environment=Environment(image=self.image, **environment),
            **fields,
        )
        return await self.harness.run(spec)

    async def result(self, script: str, **fields: Any) -> tuple[int | None, list[str]]:
        """Exit code of a command, and the lines that it printed."""
        self.intake.lines.clear()
        allocation = await self.run(script, **fields)
        ended = await self.harness.until_ended(allocation, timeout_s=90)
        await self.harness.withdraw(allocation)
        (pod,) = ended.pods
        assert pod.exit_code is not None, (pod, self.harness.text(allocation))
        lines = [line.decode() for line in self.intake.printed()]
        if pod.exit_code not in (0, 7):
            lines += [line.decode() for line in self.intake.printed("stderr")] + self.harness.text(allocation)
        return pod.exit_code, lines


@pytest.fixture
async def real(idle: LauncherHarness, image: str) -> AsyncIterator[RealHarness]:
    with serve_intake() as intake, serve_master() as master:
        async with reachable(intake.url) as intake_url, reachable(master.url) as master_url:
            idle.tasks = TaskSettings(master_url=master_url, log_intake_url=intake_url)
            idle.cluster = cluster(
                resource_manager={
                    "type": "kubernetes",
                    "slot_type": "cpu",
                    "slot_resource_requests": {"cpu": 0.1},
                    "max_slots_per_pod": 4,
                    "default_compute_resource_pool": idle.pool,
                    "default_aux_resource_pool": idle.pool,
                }
            )
            idle.settings = msgspec.structs.replace(idle.settings, shipper=ShipperSettings(kind="builtin"))
            await idle.start()
            yield RealHarness(idle, intake, master, image)
            await idle.kill()


async def test_a_command_runs_and_its_lines_are_delivered_before_it_ends(real: RealHarness) -> None:
    code, lines = await real.result("seq 1 500; echo dollars '$$' $(echo done); exit 7")
    assert code == 7
    assert lines[:2] == ["1", "2"]
    assert lines[-1] == "dollars $$ done"


async def test_files_users_and_mounts_are_as_promised(real: RealHarness) -> None:
    script = "; ".join(
        (
            "id -u; id -g; pwd",
            "stat -c '%a %u' /run/determined /run/determined/workdir /run/determined/task-setup.sh",
            "cat /run/determined/etc/passwd",
            "cat /run/determined/secret.json; stat -c '%a %u' /run/determined/secret.json",
            "df --output=fstype /dev/shm | tail -1",
            "touch /run/determined/workdir/mine /run/determined/info/mine && echo writable",
            "cat /data/hostname; touch /data/no 2>/dev/null || echo read-only",
            'echo "$DET_AGENT_ID $DET_KUBERNETES_POD_IP $WANDB_API_KEY $DET_SLOT_IDS"',
        )
    )
    code, lines = await real.result(
        script,
        slots=1,
        owner=Owner(username="alice", uid=1234, user="al", gid=2345, group="als"),
        files=(TaskFile(path="secret.json", content=b"{}\n"),),
        bind_mounts=(BindMount(host_path="/etc", container_path="/data", read_only=True),),
        environment={"variables": ("WANDB_API_KEY=key",)},
    )
    assert code == 0, lines
    assert lines[:3] == ["1234", "2345", "/run/determined/workdir"]
    assert lines[3:6] == ["700 1234", "700 1234", "744 1234"]
    assert lines[6] == "al:x:1234:2345::/run/determined/workdir:/bin/bash"
    assert lines[7:9] == ["{}", "600 1234"]
    assert lines[9:11] == ["tmpfs", "writable"]
    assert lines[12] == "read-only"
    node, address, key, slots = lines[13].split()
    assert (node.startswith("node"), address.count("."), key, slots) == (True, 3, "key", "[0]")


async def test_empty_directories_sidecars_and_init_containers_of_the_user(real: RealHarness) -> None:
    pod_spec = {
        "spec": {
            "volumes": [{"name": "mine", "emptyDir": {}}],
            "initContainers": [
                {
                    "name": "first",
                    "image": real.image,
                    "command": ["sh", "-c", "echo from-init > /mine/file"],
                    "volumeMounts": [{"name": "mine", "mountPath": "/mine"}],
                }
            ],
            "containers": [
                {"name": "sleeps", "image": real.image, "command": ["sleep", "1000"]},
                {"name": "fails", "image": real.image, "command": ["false"]},
                {
                    "name": "determined-container",
                    "volumeMounts": [{"name": "mine", "mountPath": "/mine"}],
                    "resources": {"requests": {"memory": "64Mi"}},
                },
            ],
        }
    }
    code, lines = await real.result("cat /mine/file", environment={"pod_spec": pod_spec})
    assert (code, lines) == (0, ["from-init"])
    await real.harness.namespace.until_empty(timeout_s=90)


async def test_an_init_container_that_fails(real: RealHarness) -> None:
    bad = {"name": "bad", "image": real.image, "command": ["sh", "-c", "echo went wrong; exit 4"]}
    allocation = await real.run("true", environment={"pod_spec": {"spec": {"initContainers": [bad]}}})
    ended = await real.harness.until_ended(allocation, timeout_s=60)
    assert [(pod.exit_code, pod.failure, pod.message) for pod in ended.pods] == [(4, "FAILED", "container bad: Error")]


async def test_an_image_without_python_says_so_in_the_log(real: RealHarness) -> None:
    allocation = await real.run("true", environment={"variables": ("DET_PYTHON_EXECUTABLE=/no/python",)})
    ended = await real.harness.until_ended(allocation, timeout_s=60)
    assert [pod.exit_code for pod in ended.pods] == [127]

    def is_told() -> bool:
        return any("/no/python" in text for text in real.harness.text(allocation))

    await eventually(is_told)


async def test_stop_asks_and_kills_when_the_grace_is_over(real: RealHarness) -> None:
    real.intake.lines.clear()
    allocation = await real.run("trap 'echo asked' TERM; echo begun; while :; do sleep 0.1; done")
    await real.harness.until_running(allocation)
    await eventually(lambda: b"begun" in real.intake.printed())
    await real.harness.stop(allocation, grace_s=3)
    ended = await real.harness.until_ended(allocation, timeout_s=60)
    assert ended.stopped
    assert b"asked" in real.intake.printed()


async def test_an_image_that_does_not_exist(real: RealHarness) -> None:
    real.image = "local/there-is-none:1"
    allocation = await real.run("true")
    ended = await real.harness.until_ended(allocation, timeout_s=120)
    (pod,) = ended.pods
    assert pod.failure == "IMAGE_PULL"
    assert "local/there-is-none:1" in pod.message
