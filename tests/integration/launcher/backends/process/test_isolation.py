"""What tasks of this machine see of it and of each other, and what they may do to it."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.bus import Bus, BusSettings
from libs.events.orders import BindMount, Owner
from services.launcher.backends.process.preparation.interpreter import closed_to_others
from services.launcher.backends.process.supervision.spawning import PYTHON
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.process.conftest import NOBODY
from tests.integration.launcher.launcher_harness import LauncherHarness, command, open_harness

A = "11111111-2222-4333-8444-555555555555.1"
B = "99999999-2222-4333-8444-555555555555.1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state folder of a whole system, with secrets beside those of the launcher, and its checkpoints."""
    folder = tmp_path / "folder"
    for name in ("config", "checkpoints"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text(f"{name} of the system\n")
    return folder


@pytest.fixture
async def harness(
    bus: Bus, bus_settings: BusSettings, folder: Path, stub_python: str, isolation: str
) -> AsyncIterator[LauncherHarness]:
    settings = {
        # The launcher's own directory is hidden besides: as in a real state folder, the order is inner, outer, inner.
        "RESOLUTE_PROCESS__HIDDEN_PATHS": f'["{folder}", "{folder}/config"]',
        "RESOLUTE_PROCESS__MOUNTABLE_PATHS": f'["{folder}/checkpoints"]',
    }
    async with open_harness(bus, bus_settings.url, folder, stub_python, settings) as opened:
        yield opened


async def printed(harness: LauncherHarness, script: str, allocation: str = A, **fields: object) -> list[str]:
    """What a task printed that ended well, without what the entrypoint says."""
    await harness.run(allocation, command(f"echo --; {script}", **fields))
    ended = await harness.until_ended(allocation)
    lines = harness.printed(allocation)
    assert ended.pods[0].exit_code == 0, (ended, lines, harness.printed(allocation, "stderr"))
    return lines[lines.index("--") + 1 :]


async def refusal(harness: LauncherHarness, **fields: object) -> str:
    await harness.run(A, command("true", **fields))
    (pod,) = (await harness.until_ended(A)).pods
    assert (pod.failure, pod.exit_code) == ("LAUNCH_ERROR", None)
    return pod.message


def bind(host_path: Path | str, container_path: str = "/given") -> tuple[BindMount, ...]:
    return (BindMount(host_path=str(host_path), container_path=container_path),)


async def test_task_sees_its_own_processes_only(harness: LauncherHarness, isolation: str) -> None:
    if "all processes" in isolation:
        pytest.skip("no /proc may be mounted on this machine")
    await harness.run(B, command("sleep 300"))
    await harness.until_running(B)
    seen = await printed(harness, "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -a ^DET_ALLOCATION_ID | sort -u")
    assert seen == [f"DET_ALLOCATION_ID={A}"]
    [first] = await printed(harness, "tr '\\0' ' ' < /proc/1/cmdline", "22222222-2222-4333-8444-555555555555.1")
    assert "capture.py" in first


async def test_state_folder_is_hidden_whole(harness: LauncherHarness, folder: Path) -> None:
    assert await printed(harness, f"ls -A {folder} {harness.state_dir} 2>/dev/null | grep -v : || true") == []


async def test_state_folder_stays_hidden_in_what_is_mounted_from_around_it(
    harness: LauncherHarness, folder: Path
) -> None:
    (folder.parent / "beside").write_text("seen\n")
    script = "cat /given/beside; ls -A /given/folder | grep -v checkpoints || true"
    assert await printed(harness, script, bind_mounts=bind(folder.parent)) == ["seen"]


async def test_checkpoints_are_seen_in_what_is_mounted_from_around_the_state_folder(
    harness: LauncherHarness, folder: Path
) -> None:
    script = "cat /given/folder/checkpoints/file; ls /given/folder; echo new > /given/folder/checkpoints/new"
    seen = await printed(harness, script, bind_mounts=bind(folder.parent))
    assert seen == ["checkpoints of the system", "checkpoints"]
    assert (folder / "checkpoints" / "new").read_text() == "new\n"


async def test_state_folder_cannot_be_mounted(harness: LauncherHarness, folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder / "config")
    assert "tasks may not see this directory" in await refusal(harness, bind_mounts=bind(folder.parent / "link"))


async def test_checkpoints_in_the_state_folder_can_be_mounted(harness: LauncherHarness, folder: Path) -> None:
    seen = await printed(harness, "cat /determined_shared_fs/file", shared_fs_host_path=str(folder / "checkpoints"))
    assert seen == ["checkpoints of the system"]


async def test_system_is_not_mounted_over(harness: LauncherHarness, folder: Path) -> None:
    assert "belongs to the system" in await refusal(harness, bind_mounts=bind(folder.parent, "/etc/ssl"))


async def test_configuration_may_allow_to_mount_over_the_system(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, stub_python: str, isolation: str
) -> None:
    (tmp_path / "file").write_text("mine\n")
    allowed = {"RESOLUTE_PROCESS__ALLOWED_SYSTEM_MOUNTS": '["/etc/resolute"]'}
    async with open_harness(bus, bus_settings.url, tmp_path, stub_python, allowed) as harness:
        mounts = bind(tmp_path / "file", "/etc/resolute/file")
        assert await printed(harness, "cat /etc/resolute/file", bind_mounts=mounts) == ["mine"]


async def test_nothing_hidden_can_be_uncovered_and_no_program_gives_rights(
    harness: LauncherHarness, folder: Path
) -> None:
    attempts = (
        f"umount {folder} 2>/dev/null && ls -A {folder}",
        f"unshare --user --map-root-user --mount sh -c 'umount {folder}; ls -A {folder}' 2>/dev/null",
        "mknod /run/determined/disk b 254 0 2>/dev/null && cat /run/determined/disk",
        "now=$(cat /proc/sys/vm/swappiness); sh -c 'echo $0 > /proc/sys/vm/swappiness' $now 2>/dev/null && echo kernel",
        "grep -E '^(NoNewPrivs|CapBnd)' /proc/self/status",
        "grep -E ' /(given|usr|tmp|run/determined) ' /proc/self/mountinfo | grep -vE 'nosuid,nodev'",
    )
    seen = await printed(harness, "; ".join((*attempts, "true")), bind_mounts=bind(folder.parent))
    bound, privileges = seen
    assert privileges.split() == ["NoNewPrivs:", "1"]
    assert not int(bound.split()[1], 16) & (
        1 << 21 | 1 << 19 | 1 << 2 | 1 << 27
    )  # mount, trace, read all, make devices


async def test_home_of_a_linked_user_is_his(harness: LauncherHarness, linked_users: None) -> None:
    owner = Owner(username="alice", uid=NOBODY, gid=NOBODY)
    assert await printed(harness, 'echo "$HOME"; id -u', owner=owner) == [pwd.getpwuid(NOBODY).pw_dir, str(NOBODY)]
    unknown = Owner(username="bob", uid=54321, gid=54321)
    assert await printed(harness, 'echo "$HOME"', B, owner=unknown) == ["/run/determined/workdir"]


async def test_linked_user_and_group_have_their_names(harness: LauncherHarness, linked_users: None) -> None:
    owner = Owner(username="alice", user="al", uid=54321, group="crew", gid=54322)
    python = "import getpass; print(getpass.getuser())"
    seen = await printed(harness, f"id -un; id -gn; env -u USER -u LOGNAME {PYTHON} -c '{python}'", owner=owner)
    assert seen == ["al", "crew", "al"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_refusal_names_the_directory_that_is_closed_to_a_linked_user(harness: LauncherHarness) -> None:
    closed = closed_to_others(PYTHON)
    if closed is None:
        pytest.skip(f"needs an interpreter that ordinary users may not execute; {PYTHON} is open to them")
    message = await refusal(harness, owner=Owner(username="alice", uid=NOBODY, gid=NOBODY))
    assert f"user {NOBODY} may not execute {PYTHON}, because {closed} is closed" in message


async def test_linked_user_mounts_only_what_he_can_reach(
    harness: LauncherHarness, folder: Path, linked_users: None
) -> None:
    (folder.parent / "closed" / "open").mkdir(parents=True)
    (folder.parent / "closed").chmod(0o700)
    owner = Owner(username="alice", uid=NOBODY, gid=NOBODY)
    message = await refusal(harness, owner=owner, bind_mounts=bind(folder.parent / "closed" / "open"))
    assert "Permission denied" in message


async def test_stop_that_comes_before_the_task_listens_is_heard(harness: LauncherHarness) -> None:
    """Process 1 of a namespace is not ended by a signal it does not handle."""
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    await harness.stop(A, grace_s=60)
    ended = await harness.until_ended(A, timeout_s=50)
    assert (ended.stopped, ended.pods[0].exit_code) == (True, 143)


async def test_exit_code_is_found_though_the_launcher_was_away_and_the_namespace_is_gone(
    harness: LauncherHarness,
) -> None:
    await harness.run(A, command("until [ -e /run/determined/go ]; do sleep 0.02; done; exit 42"))
    await harness.until_running(A)
    harness.launcher.kill()
    (harness.run_dir(A) / "go").touch()
    await eventually(lambda: not harness.pids(A))
    harness.launcher.start()
    assert (await harness.until_ended(A)).pods[0].exit_code == 42


async def test_two_tasks_share_no_memory_segments(harness: LauncherHarness) -> None:
    segments = "readlink /proc/self/ns/ipc"
    [first], [second] = await asyncio.gather(printed(harness, segments), printed(harness, segments, B))
    assert len({first, second, os.readlink("/proc/self/ns/ipc")}) == 3
