"""Shells of users whom this machine does not know, and of a launcher without any rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.servers.ports import free_port
from tests.harness.installed_client import need_ssh
from tests.harness.waiting import wait_until
from tests.integration.launcher.backends.process.interactive.tasks import KEYS
from tests.integration.launcher.backends.process.test_ordinary_user import NOBODY, REPOSITORY, ordinary_python

pytestmark = pytest.mark.interactive

SCRIPT = """
import asyncio, os, sys
from pathlib import Path
from libs.clock import SystemClock
from libs.events.orders import Order, Owner
from libs.ssh_keys import KeyPair
from services.launcher.backends.process.wiring import open_process_backend
from services.launcher.backends.process.settings import ProcessSettings
from services.launcher.container.settings import TaskSettings
from services.launcher.task_lines import Lines
from tests.integration.launcher.backends.process.interactive.tasks import ALLOCATION, shell
from tests.integration.launcher.launcher_harness import make_python

async def main(directory, port, user, uid):
    settings = ProcessSettings(
        state_dir=str(directory / "state"), python=make_python(directory, "/usr/bin/python3"), slots=1
    )
    keys = KeyPair(os.environ["PRIVATE_KEY"], os.environ["PUBLIC_KEY"])
    spec = shell(port, keys, owner=Owner(username="ann", user=user, uid=uid, gid=uid, group="g"))
    async with open_process_backend(
        pool="local", settings=settings, tasks=TaskSettings(), clock=SystemClock(), environ=dict(os.environ),
        lines=Lines(),
    ) as backend:
        await backend.start(Order(allocation=ALLOCATION, pool="local", desired="run", spec=spec))
        await asyncio.to_thread(sys.stdin.read)
        await backend.stop(ALLOCATION, grace_s=5.0, ordered=True)
        while not (await backend.observe(ALLOCATION)).gone:
            await asyncio.sleep(0.05)
        await backend.remove(ALLOCATION)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="resolute-shell-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("is_ordinary", [True, False], ids=["ordinary launcher", "unknown uid"])
def test_who_has_the_key_comes_in_by_the_name_of_the_agent_user(directory: Path, is_ordinary: bool) -> None:
    need_ssh()
    if not is_ordinary and os.getuid() != 0:
        pytest.skip("needs root, to run a task as somebody else")
    user, uid = ("root", NOBODY) if is_ordinary else ("ann", 12345)
    home = directory / "home"
    home.mkdir()
    if is_ordinary and os.getuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{REPOSITORY}:{packages}",
        "HOME": str(home),
        "PRIVATE_KEY": KEYS.private,
        "PUBLIC_KEY": KEYS.public,
    }
    python = ordinary_python() if is_ordinary else ordinary_python()[-1:]
    port = free_port()
    process = subprocess.Popen(
        [*python, "-c", SCRIPT, str(home), str(port), user, str(uid)],
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        text=True,
    )
    try:
        seen = wait_until(lambda: id_over_ssh(directory, port, user) or process.poll(), what="somebody comes in")
    finally:
        _, errors = process.communicate(timeout=60)
    if "Tasks cannot be isolated" in errors:
        pytest.skip(errors)
    assert process.returncode == 0, errors
    assert seen == f"{user} {uid if os.getuid() == 0 else os.getuid()}\n"


def id_over_ssh(directory: Path, port: int, user: str) -> str:
    key = directory / "key"
    key.write_text(KEYS.private)
    key.chmod(0o600)
    done = subprocess.run(
        [
            *("ssh", "-p", str(port), "-i", str(key), "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"),
            *("-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", f"{user}@127.0.0.1"),
            *("echo", "$(id -un) $(id -u)"),
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout
