"""A shell of a linked user whom this machine does not know lets its user in."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from deploy.local.servers.ports import free_port
from libs.events.orders import Owner
from tests.harness.installed_client import need_ssh
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.process.interactive.tasks import ALLOCATION, KEYS, shell
from tests.integration.launcher.launcher_harness import LauncherHarness

OWNER = Owner(username="alice", user="al", uid=54321, group="crew", gid=54322)


async def test_command_in_a_terminal_is_carried_out(
    harness: LauncherHarness, linked_users: None, tmp_path: Path
) -> None:
    need_ssh()
    port = free_port()
    await harness.run(ALLOCATION, shell(port, owner=OWNER))
    await eventually(
        lambda: any("Server listening" in line for line in harness.printed(ALLOCATION, "stderr")),
        what="sshd listens",
    )
    key = tmp_path / "key"
    key.write_text(KEYS.private)
    key.chmod(0o600)
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "IdentitiesOnly=yes")
    ssh = ["ssh", "-tt", "-p", str(port), "-i", str(key), *(word for option in options for word in ("-o", option))]
    done = await asyncio.to_thread(
        subprocess.run,
        [*ssh, f"{OWNER.user}@127.0.0.1", "id -un; id -gn"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["al", "crew"], (done.stderr, harness.printed(ALLOCATION, "stderr"))
    assert done.returncode == 0
