"""From an order to a process tree and back: starts, ends, stops, and what is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import venv
from pathlib import Path
from uuid import uuid4

import pytest

from libs.bus import Bus, BusSettings
from libs.events.orders import BindMount, Environment, TaskFile
from libs.events.subjects import ORDERS_BUCKET, order_key
from tests.harness.processes import ServiceProcess
from tests.harness.waiting import eventually
from tests.integration.launcher.launcher_harness import POOL, LauncherHarness, command, make_python, open_harness

A = "11111111-2222-4333-8444-555555555555.1"
B = "99999999-2222-4333-8444-555555555555.1"


def on_this_machine(*paths: str) -> list[str]:
    return [path for path in paths if Path(path).exists()]


async def test_command_runs_and_its_exit_code_is_told(harness: LauncherHarness) -> None:
    await harness.run(A, command("echo hello; exit 3"))
    ended = await harness.until_ended(A)
    assert ended.pool == POOL
    assert not ended.stopped
    (pod,) = ended.pods
    assert (pod.state, pod.exit_code, pod.failure) == ("TERMINATED", 3, "FAILED")
    assert pod.message == "exited with code 3"
    assert pod.node == "node-a"
    assert harness.printed(A)[-1] == "hello"


async def test_states_are_told_in_order_with_growing_revisions(harness: LauncherHarness) -> None:
    # Of states that follow each other at once only the last may be told.
    await harness.run(A, command("until [ -e /run/determined/go ]; do sleep 0.02; done"))
    await harness.until_running(A)
    (harness.run_dir(A) / "go").touch()
    await harness.until_ended(A)
    seen = [observation for observation in harness.observations if observation.allocation == A]
    revisions = [observation.revision for observation in seen]
    assert revisions == sorted(set(revisions))
    states = [observation.pods[0].state for observation in seen]
    order = ["ASSIGNED", "PULLING", "STARTING", "RUNNING", "TERMINATED"]
    assert [order.index(state) for state in states] == sorted(order.index(state) for state in states)
    assert "RUNNING" in states
    assert seen[-1].pods[0].exit_code == 0


async def test_task_finds_its_environment_and_none_of_the_launchers(harness: LauncherHarness) -> None:
    spec = command(
        "env; pwd; id -u; cat /run/determined/note; ls -d /opt/determined /run/determined/info; echo $0",
        environment=Environment(variables=("ONE=1", "TWO=$ONE", "EMPTY", "DET_TASK_ID=stolen")),
        files=(TaskFile(path="note", content=b"from the order\n", mode=0o400),),
    )
    await harness.run(A, spec)
    assert (await harness.until_ended(A)).pods[0].exit_code == 0
    lines = harness.printed(A)
    assert {"ONE=1", "TWO=$ONE", "EMPTY=", f"DET_TASK_ID={spec.task}", "DET_AGENT_ID=node-a"} <= set(lines)
    assert {"/run/determined/workdir", "from the order", str(os.getuid())} <= set(lines)
    assert not [line for line in lines if "SECRET_OF_THE_LAUNCHER" in line or line.startswith("RESOLUTE_")]


async def test_task_finds_the_interpreter_it_was_given_behind_a_script_in_tmp(
    bus: Bus, bus_settings: BusSettings, tmp_path: Path, isolation: str
) -> None:
    venv.create(tmp_path / "behind", symlinks=True)
    python = make_python(tmp_path, executable=str(tmp_path / "behind" / "bin" / "python"))
    async with open_harness(bus, bus_settings.url, tmp_path, python) as harness:
        await harness.run(A, command('"$DET_PYTHON_EXECUTABLE" -c "import sys; print(sys.prefix)"'))
        assert (await harness.until_ended(A)).pods[0].exit_code == 0, harness.printed(A, "stderr")
        assert harness.printed(A)[-1] == str(tmp_path / "behind")


async def test_every_task_has_its_own_run_directory_and_tmp(harness: LauncherHarness) -> None:
    name = f"resolute-{uuid4()}"
    script = f"echo {{0}} | tee /run/determined/{name} > /tmp/{name}; sleep 1; cat /run/determined/{name} /tmp/{name}"
    await asyncio.gather(harness.run(A, command(script.format("a"))), harness.run(B, command(script.format("b"))))
    await asyncio.gather(harness.until_ended(A), harness.until_ended(B))
    assert harness.printed(A)[-2:] == ["a", "a"]
    assert harness.printed(B)[-2:] == ["b", "b"]
    assert not on_this_machine(f"/tmp/{name}", f"/run/determined/{name}")


async def test_mounts_of_the_order_are_there(
    harness: LauncherHarness, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("data")
    (data / "in").write_text("input\n")
    spec = command(
        "cat given/in; echo out > /determined_shared_fs/out; echo no > given/in || echo read-only",
        shared_fs_host_path=str(data / "shared"),
        bind_mounts=(BindMount(host_path=str(data), container_path="given", read_only=True),),
    )
    await harness.run(A, spec)
    assert (await harness.until_ended(A)).pods[0].exit_code == 0
    assert harness.printed(A)[-2:] == ["input", "read-only"]
    assert (data / "shared" / "out").read_text() == "out\n"
    assert (data / "in").read_text() == "input\n"


async def test_what_can_never_start_is_told_with_the_reason(harness: LauncherHarness) -> None:
    await harness.run(A, command("true", bind_mounts=(BindMount(host_path="/nowhere/at/all", container_path="/x"),)))
    ended = await harness.until_ended(A)
    assert ended.pods[0].failure == "LAUNCH_ERROR"
    assert "/nowhere/at/all" in ended.pods[0].message
    await harness.run(B, command("true", files=(TaskFile(path="../../etc/passwd", content=b""),)))
    refused = await harness.until_ended(B)
    assert (refused.failure, refused.pods) == ("LAUNCH_ERROR", ())
    assert "../../etc/passwd" in refused.message


async def test_stop_asks_first(harness: LauncherHarness) -> None:
    await harness.run(A, command("trap 'echo asked; exit 7' TERM; echo ready; while true; do sleep 0.05; done"))
    await eventually(lambda: "ready" in harness.printed(A))
    await harness.stop(A, grace_s=30)
    ended = await harness.until_ended(A)
    assert ended.stopped
    assert (ended.pods[0].exit_code, ended.pods[0].failure) == (7, "DELETED")
    assert harness.printed(A)[-1] == "asked"


async def test_stop_kills_what_does_not_listen_and_all_that_it_started(harness: LauncherHarness) -> None:
    stubborn = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 300' &) ; echo ready; while true; do sleep 1; done"
    await harness.run(A, command(stubborn))
    await eventually(lambda: "ready" in harness.printed(A))
    assert len(harness.pids(A)) >= 3
    await harness.stop(A, grace_s=0.3)
    ended = await harness.until_ended(A)
    assert (ended.stopped, ended.pods[0].exit_code) == (True, 137)
    assert harness.pids(A) == []
    # The wrapper lived long enough to write the end of the streams.
    assert (harness.pod(A) / "logs" / "stdout.0.log").read_text().splitlines()[-1].endswith(";eos 137")


async def test_grandchildren_do_not_outlive_a_task_that_ends(harness: LauncherHarness) -> None:
    await harness.run(A, command("setsid sleep 300 >/dev/null 2>&1 & (setsid sleep 300 &) ; sleep 0.2; exit 0"))
    assert (await harness.until_ended(A)).pods[0].exit_code == 0
    assert harness.pids(A) == []


async def test_withdrawn_order_leaves_nothing(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    await harness.withdraw(A)
    await eventually(lambda: harness.remains() == [])
    await eventually(lambda: list((harness.state_dir / "trash").iterdir()) == [])


async def test_stop_right_after_the_start_is_obeyed(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.stop(A, grace_s=2)
    ended = await harness.until_ended(A)
    assert ended.stopped
    assert harness.pids(A) == []


async def test_hooks_run_in_the_shell_of_the_entrypoint(harness: LauncherHarness) -> None:
    await harness.run(A, command("echo $FROM_HOOK", startup_hook="export FROM_HOOK=yes\n"))
    await harness.run(B, command("echo not reached", startup_hook="sh -c 'exit 9'\n"))
    assert (await harness.until_ended(A)).pods[0].exit_code == 0
    assert harness.printed(A)[-1] == "yes"
    assert (await harness.until_ended(B)).pods[0].exit_code == 9
    assert "not reached" not in harness.printed(B)


async def test_python_without_the_client_is_explained(harness: LauncherHarness) -> None:
    variables = ("DET_PYTHON_EXECUTABLE=/bin/false",)
    await harness.run(A, command("true", environment=Environment(variables=variables)))
    assert (await harness.until_ended(A)).pods[0].exit_code == 1
    assert "cannot run '/bin/false --version'" in harness.printed(A, "stderr")[-1]


async def test_a_module_that_the_python_of_a_task_lacks_is_the_reason_of_its_end(harness: LauncherHarness) -> None:
    await harness.run(A, command("python3 -c 'import a_module_of_nobody'"))
    ended = await harness.until_ended(A)
    assert ended.pods[0].message == "ModuleNotFoundError: No module named 'a_module_of_nobody'"
    assert ended.pods[0].exit_code == 1


async def test_stop_order_for_what_never_existed_is_answered(harness: LauncherHarness) -> None:
    await harness.stop(A)
    ended = await harness.until_ended(A)
    assert (ended.stopped, ended.pods) == (True, ())


async def test_order_withdrawn_at_once_leaves_nothing(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.withdraw(A)
    await harness.run(B, command("true"))
    await harness.until_ended(B)
    await eventually(lambda: len(harness.remains()) == 1)


async def test_unreadable_order_disturbs_nobody(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    await harness.bus.bucket(ORDERS_BUCKET).put(order_key(POOL, A), b"{broken")
    await harness.run(B, command("true"))
    await harness.until_ended(B)
    assert harness.pids(A)


async def test_gang_ends_with_the_first_that_fails(harness: LauncherHarness) -> None:
    script = "if mkdir /determined_shared_fs/first; then sleep 0.5; exit 9; else sleep 300; fi"
    spec = command(script, num_pods=3, slots=3, shared_fs_host_path=str(harness.state_dir.parent / "shared"))
    await harness.run(A, spec)
    ended = await harness.until_ended(A)
    assert len({pod.name for pod in ended.pods}) == 3
    assert sorted(pod.failure for pod in ended.pods) == ["DELETED", "DELETED", "FAILED"]
    (failed,) = (pod for pod in ended.pods if pod.failure == "FAILED")
    assert failed.exit_code == 9
    assert not ended.stopped


async def test_gang_of_which_one_cannot_start_does_not_start(harness: LauncherHarness) -> None:
    spec = command("sleep 300", num_pods=2, bind_mounts=(BindMount(host_path="/nowhere", container_path="/x"),))
    await harness.run(A, spec)
    ended = await harness.until_ended(A)
    assert [pod.failure for pod in ended.pods] == ["LAUNCH_ERROR", "ABORTED"]


async def test_capacity_tells_who_holds_which_slot(harness: LauncherHarness) -> None:
    first = await eventually(harness.capacity)
    assert first is not None
    assert (first.slots, first.max_slots_per_pod, first.backend) == (4, 4, "process")
    await harness.run(A, command("sleep 300", slots=2))
    await harness.run(B, command("sleep 300"))
    await asyncio.gather(harness.until_running(A), harness.until_running(B))

    async def held() -> bool:
        capacity = await harness.capacity()
        assert capacity is not None
        (node,) = capacity.nodes
        return [device.allocation for device in node.devices] == [A, A, None, None] and node.aux_containers == (B,)

    await eventually(held)
    harness.launcher.restart()
    await eventually(held)
    await harness.stop(A, grace_s=0)
    await harness.until_ended(A)

    async def free() -> bool:
        capacity = await harness.capacity()
        assert capacity is not None
        return not any(device.allocation for device in capacity.nodes[0].devices)

    await eventually(free)


async def test_supervisor_that_is_killed_takes_the_task_with_it(harness: LauncherHarness) -> None:
    await harness.run(A, command("sleep 300"))
    await harness.until_running(A)
    os.kill(harness.supervisor(A), signal.SIGKILL)
    ended = await harness.until_ended(A)
    assert (ended.pods[0].state, ended.pods[0].failure) == ("TERMINATED", "NODE_LOST")
    assert harness.pids(A) == []


async def test_second_launcher_on_the_same_state_refuses(harness: LauncherHarness) -> None:
    await eventually(harness.capacity)
    log_path = harness.state_dir.parent / "second.log"
    environment = {"RESOLUTE_PROCESS__STATE_DIR": str(harness.state_dir), "RESOLUTE_POOL": POOL}
    second = ServiceProcess("services.launcher.main", log_path=log_path, env=environment)
    second.start()
    await eventually(lambda: not second.is_running)
    assert second.returncode == 1
    assert "another launcher is using the state directory" in log_path.read_text()
