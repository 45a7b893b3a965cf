"""Shells through the unmodified client, ssh, scp, rsync and the proxy."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from deploy.local.servers.ports import free_port
from tests.e2e.interactive.users import User
from tests.harness.installed_client import need_ssh
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]

MEGABYTES = 200


@pytest.fixture(scope="module")
def shell(user: User) -> Iterator[str]:
    need_ssh()
    task = user.open_when_ready("shell", "--config", "resources.slots=0")
    yield task
    user.kill("shell", task)


def test_det_works_inside_as_the_user(user: User, shell: str) -> None:
    assert "You are logged in as user 'determined'" in user.in_shell(shell, "det", "user", "whoami")


def test_a_login_shell_has_the_path_of_the_task(user: User, shell: str) -> None:
    typed = user.in_shell(shell, typed="stty -echo\ndet --version\necho base=$PYTHONUSERBASE\nexit\n")
    assert "det 0.38.1" in typed
    assert "base=/run/determined/pythonuserbase" in typed


def test_a_prefix_of_the_id_will_do(user: User, shell: str) -> None:
    assert shell in user.in_shell(shell[:8], "echo", "$DET_TASK_ID")


def test_files_of_200_megabytes_travel_both_ways(user: User, shell: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 20) * MEGABYTES)
    options = user.ssh_options(shell, tmp_path)
    begin = time.monotonic()
    user.program("scp", *options, str(data), f"root@{shell}:/run/determined/workdir/data")
    sent = time.monotonic()
    user.program("scp", *options, f"root@{shell}:/run/determined/workdir/data", str(tmp_path / "back"))
    print(f"{MEGABYTES} MB there in {sent - begin:.1f} s, back in {time.monotonic() - sent:.1f} s")
    assert digest(tmp_path / "back") == digest(data)


def test_rsync_sends_what_has_changed(user: User, shell: str, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "same").write_bytes(os.urandom(1 << 20))
    (folder / "other").write_text("one")
    ssh = subprocess.list2cmdline(["ssh", *user.ssh_options(shell, tmp_path)]).replace('"', "'")
    sync = ("rsync", "-a", "--stats", "-e", ssh, f"{folder}/", f"root@{shell}:/run/determined/workdir/code")
    assert "Number of regular files transferred: 2" in user.program(*sync)
    (folder / "other").write_text("another")
    assert "Number of regular files transferred: 1" in user.program(*sync)
    assert "another" in user.in_shell(shell, "cat", "/run/determined/workdir/code/other")


def test_five_sessions_at_once(user: User, shell: str) -> None:
    with ThreadPoolExecutor(5) as pool:
        printed = list(pool.map(lambda n: user.in_shell(shell, f"sleep 2; echo session {n * 7}"), range(5)))
    assert [f"session {n * 7}" in text for n, text in enumerate(printed)] == [True] * 5


def test_the_command_that_is_shown_works(user: User, shell: str) -> None:
    printed = user.det("shell", "show-ssh-command", shell)
    [command] = [line for line in printed.splitlines() if "ProxyCommand" in line]
    command = command.removeprefix("\x1b[32m").removesuffix("\x1b[0m")
    assert "hello over ssh" in user.program("sh", "-c", f"{command} echo hello over ssh")


def test_a_port_is_forwarded_as_editors_do(user: User, shell: str, tmp_path: Path) -> None:
    """Remote development: a server of the session in the container, reached through the session."""
    here, there = free_port(), free_port()
    serve = f"cd /run/determined/workdir && echo found > page && exec python3 -m http.server {there} --bind 127.0.0.1"
    options = user.ssh_options(shell, tmp_path)
    session = subprocess.Popen(
        ["ssh", "-tt", *options, "-L", f"{here}:127.0.0.1:{there}", f"root@{shell}", serve],
        env=user.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        assert wait_until(lambda: page_at(f"http://127.0.0.1:{here}/page"), what="it is forwarded") == "found\n"
    finally:
        session.terminate()
        session.wait(timeout=30)


def page_at(url: str) -> str:
    try:
        return httpx.get(url, timeout=5).text
    except httpx.HTTPError:
        return ""


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
