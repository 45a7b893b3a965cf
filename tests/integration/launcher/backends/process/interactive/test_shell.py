"""A shell is a real sshd, and its sessions have the environment of the container."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from deploy.local.servers.ports import free_port
from libs.events.orders import Environment
from tests.harness.installed_client import need_ssh
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.process.interactive.tasks import ALLOCATION, KEYS, TASK, shell
from tests.integration.launcher.fakes import FakeMaster
from tests.integration.launcher.launcher_harness import LauncherHarness

pytestmark = pytest.mark.interactive

ODD = ('A=say "hi" \\" \\', 'QUOTED=say "hi"', "NO_VALUE", "my.name=1", "my-name=2", "LINES_=one\ntwo", "SPACES= a  b ")


class Ssh:
    """The client of somebody with the key of the shell."""

    def __init__(self, directory: Path, port: int) -> None:
        self.port = port
        self.key = directory / "key"
        self.key.write_text(KEYS.private)
        self.key.chmod(0o600)
        self.options = [
            *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"),
            *("-o", "IdentitiesOnly=yes", "-i", str(self.key)),
        ]

    async def run(self, *command: str, typed: str = "") -> str:
        return await run("ssh", "-p", str(self.port), *self.options, "root@127.0.0.1", *command, typed=typed)


async def run(*argv: str, typed: str = "") -> str:
    done = await asyncio.to_thread(
        subprocess.run, argv, input=typed, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def start(harness: LauncherHarness, master: FakeMaster, directory: Path) -> Ssh:
    need_ssh()
    port = free_port()
    await harness.run(ALLOCATION, shell(port, environment=Environment(variables=ODD)))
    try:
        await eventually(lambda: master.called("/ready"), timeout_s=60, what="it is ready")
    except AssertionError as error:
        raise AssertionError("\n".join(harness.printed(ALLOCATION, "stderr"))) from error
    return Ssh(directory, port)


@pytest.mark.skipif(os.getuid() != 0, reason="a server of an ordinary user lets in that user alone")
async def test_sessions_have_the_environment_of_the_task(
    harness: LauncherHarness, master: FakeMaster, tmp_path: Path
) -> None:
    ssh = await start(harness, master, tmp_path)
    printed = await ssh.run("env -0")
    seen = dict(entry.split("=", 1) for entry in printed.split("\0") if entry)
    assert seen["DET_TASK_ID"] == TASK
    assert seen["PYTHONUSERBASE"] == "/run/determined/pythonuserbase"
    assert seen["PATH"].startswith("/run/determined/pythonuserbase/bin:")
    assert (seen["QUOTED"], seen["NO_VALUE"], seen["SPACES"]) == ('say "hi"', "", " a  b ")
    assert seen["LINES_"] == "one\\ntwo"
    assert "A" not in seen
    assert "my.name" not in seen
    typed = await ssh.run("-tt", typed="stty -echo; det --version; echo user base $PYTHONUSERBASE; exit\n")
    assert "det 0.38.1" in typed
    assert "user base /run/determined/pythonuserbase" in typed


@pytest.mark.skipif(os.getuid() != 0, reason="a server of an ordinary user lets in that user alone")
async def test_files_are_copied_and_ports_forwarded(
    harness: LauncherHarness, master: FakeMaster, tmp_path: Path
) -> None:
    ssh = await start(harness, master, tmp_path)
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 20))
    sent = hashlib.sha256(data.read_bytes()).hexdigest()
    await run("scp", "-P", str(ssh.port), *ssh.options, str(data), "root@127.0.0.1:/run/determined/workdir/there")
    assert sent in await ssh.run("sha256sum /run/determined/workdir/there")
    via = " ".join(("ssh", "-p", str(ssh.port), *ssh.options))
    await run("rsync", "-e", via, "root@127.0.0.1:/run/determined/workdir/there", str(tmp_path / "back"))
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == sent
    await harness.stop(ALLOCATION)
    await harness.until_ended(ALLOCATION, timeout_s=30)
    assert not harness.pids(ALLOCATION)
